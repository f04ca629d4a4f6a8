"""Not a server: certificates for those that speak TLS. In run.data: ca.crt, which signed server.crt
and client.crt, their keys (.key), and other.crt, which signed nothing."""

KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]


def make(run, names="DNS:localhost,IP:127.0.0.1"):
    """`names`: whom the server's certificate is for."""
    def openssl(*words):
        run.call(["openssl", *words])

    def path(name):
        return f"{run.data}/{name}"

    for authority in ("ca", "other"):
        openssl("req", "-x509", *KEY, "-days", "30", "-subj", f"/CN=test {authority}",
                "-keyout", path(f"{authority}.key"), "-out", path(f"{authority}.crt"))
    for owner, subject in (("server", "localhost"), ("client", "app")):
        openssl("req", *KEY, "-subj", f"/CN={subject}",
                "-keyout", path(f"{owner}.key"), "-out", path(f"{owner}.csr"))
        with open(path("names"), "w", encoding="utf-8") as file:
            file.write(f"subjectAltName={names}\n" if owner == "server" else "")
        openssl("x509", "-req", "-in", path(f"{owner}.csr"), "-CA", path("ca.crt"),
                "-CAkey", path("ca.key"), "-CAcreateserial", "-days", "30",
                "-extfile", path("names"), "-out", path(f"{owner}.crt"))
