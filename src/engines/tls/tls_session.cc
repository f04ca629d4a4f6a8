#include "engines/tls/tls_session.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/sslerr.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "base/fork.h"

namespace holdfast::engines {
namespace {

tl::unexpected<Error> tls_failure(const std::string& what) {
  std::array<char, 256> text{};
  const unsigned long code = ERR_get_error();
  if (code != 0) {
    ERR_error_string_n(code, text.data(), text.size());
  }
  ERR_clear_error();
  switch (ERR_GET_LIB(code) == ERR_LIB_SSL ? ERR_GET_REASON(code) : 0) {
    case SSL_R_WRONG_VERSION_NUMBER:
    case SSL_R_HTTP_REQUEST:
    case SSL_R_PACKET_LENGTH_TOO_LONG:
      return fail(ErrorCode::unavailable, "the server does not speak TLS at this port");
    case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
      return fail(
          ErrorCode::unauthorized,
          std::string{"the server wants a certificate of ours that it trusts: "} + text.data());
    default:
      return fail(ErrorCode::unavailable, what + (text[0] != '\0' ? ": " : "") + text.data());
  }
}

bool is_address(const std::string& host) {
  std::array<unsigned char, 16> bytes{};
  return inet_pton(AF_INET, host.c_str(), bytes.data()) == 1 ||
         inet_pton(AF_INET6, host.c_str(), bytes.data()) == 1;
}

struct FreeSsl {
  void operator()(SSL* ssl) const { SSL_free(ssl); }
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
};

class OpenSslSession : public Tls::Session {
 public:
  explicit OpenSslSession(std::unique_ptr<SSL, FreeSsl> ssl) : ssl_{std::move(ssl)} {
    BIO* const in = BIO_new(BIO_s_mem());
    BIO* const out = BIO_new(BIO_s_mem());
    BIO_set_mem_eof_return(in, -1);
    SSL_set_bio(ssl_.get(), in, out);  // which owns them
    SSL_set_connect_state(ssl_.get());
  }

  Result<void> receive(std::string_view from_peer, std::string& plain, std::string& out) override {
    while (!from_peer.empty()) {
      const int took = BIO_write(SSL_get_rbio(ssl_.get()), from_peer.data(), clamped(from_peer));
      if (took <= 0) {
        return tls_failure("TLS ran out of memory");
      }
      from_peer.remove_prefix(static_cast<std::size_t>(took));
    }
    std::array<char, 16384> buffer;
    while (true) {
      const int got = SSL_read(ssl_.get(), buffer.data(), buffer.size());
      if (got <= 0) {
        return judge(got, out);
      }
      plain.append(buffer.data(), static_cast<std::size_t>(got));
    }
  }

  Result<void> send(std::string& plain, std::string& out) override {
    if (SSL_is_init_finished(ssl_.get()) == 0) {
      return judge(SSL_do_handshake(ssl_.get()), out);
    }
    while (!plain.empty()) {
      const int took = SSL_write(ssl_.get(), plain.data(), clamped(plain));
      if (took <= 0) {
        return judge(took, out);
      }
      plain.erase(0, static_cast<std::size_t>(took));
    }
    drain(out);
    return {};
  }

  bool is_ready() const override { return SSL_is_init_finished(ssl_.get()) != 0; }
  std::string protocol() const override {
    const unsigned char* name = nullptr;
    unsigned size = 0;
    SSL_get0_alpn_selected(ssl_.get(), &name, &size);
    return {reinterpret_cast<const char*>(name), size};
  }

 private:
  static int clamped(std::string_view bytes) {
    return static_cast<int>(
        std::min<std::size_t>(bytes.size(), std::numeric_limits<int>::max() / 2));
  }

  void drain(std::string& out) {
    std::array<char, 16384> buffer;
    for (int got = 0;
         (got = BIO_read(SSL_get_wbio(ssl_.get()), buffer.data(), buffer.size())) > 0;) {
      out.append(buffer.data(), static_cast<std::size_t>(got));
    }
  }

  Result<void> judge(int result, std::string& out) {
    drain(out);
    switch (SSL_get_error(ssl_.get(), result)) {
      case SSL_ERROR_NONE:
      case SSL_ERROR_WANT_READ:
      case SSL_ERROR_WANT_WRITE:
        return {};
      case SSL_ERROR_ZERO_RETURN:
        return fail(ErrorCode::unavailable, "the server closed the connection");
      default:
        break;
    }
    const long verdict = SSL_get_verify_result(ssl_.get());
    if (verdict != X509_V_OK && (SSL_get_verify_mode(ssl_.get()) & SSL_VERIFY_PEER) != 0) {
      ERR_clear_error();
      return fail(
          ErrorCode::unauthorized,
          std::string{"the server's certificate is not trusted: "} +
              X509_verify_cert_error_string(verdict) +
              (verdict == X509_V_ERR_HOSTNAME_MISMATCH || verdict == X509_V_ERR_IP_ADDRESS_MISMATCH
                   ? "; it is for another host"
                   : "; name its authority with ca=FILE"));
    }
    return tls_failure("TLS failed");
  }

  std::unique_ptr<SSL, FreeSsl> ssl_;
};

class OpenSsl : public Tls {
 public:
  OpenSsl(std::unique_ptr<SSL_CTX, FreeSsl> context, bool verify)
      : context_{std::move(context)}, verify_{verify} {}

  Result<std::unique_ptr<Session>> connect(const std::string& host) override {
    std::unique_ptr<SSL, FreeSsl> ssl{SSL_new(context_.get())};
    if (!ssl) {
      return tls_failure("TLS cannot be started");
    }
    bool good = true;
    if (is_address(host)) {
      good =
          !verify_ || X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl.get()), host.c_str()) == 1;
    } else if (!host.empty()) {
      std::string name = host;  // C knows no const here
      good = SSL_ctrl(ssl.get(), SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
                      name.data()) == 1 &&
             (!verify_ || SSL_set1_host(ssl.get(), host.c_str()) == 1);
    }
    if (!good) {
      return tls_failure("TLS does not accept the name " + host);
    }
    return std::make_unique<OpenSslSession>(std::move(ssl));
  }

 private:
  std::unique_ptr<SSL_CTX, FreeSsl> context_;
  const bool verify_;
};

}  // namespace

namespace {

Result<void> load_own(SSL_CTX* context, const TlsOptions& options) {
  const std::string& key = options.key.empty() ? options.certificate : options.key;
  if (options.certificate.empty() ||
      (SSL_CTX_use_certificate_chain_file(context, options.certificate.c_str()) == 1 &&
       SSL_CTX_use_PrivateKey_file(context, key.c_str(), SSL_FILETYPE_PEM) == 1 &&
       SSL_CTX_check_private_key(context) == 1)) {
    return {};
  }
  ERR_clear_error();
  return fail(ErrorCode::invalid_argument,
              "cannot use the certificate and the key that cert= and key= name: " +
                  options.certificate + ", " + key);
}

// In the form that the library wants: a length before the name.
bool set_protocol(SSL_CTX* context, const std::string& name) {
  const std::string wire = std::string(1, static_cast<char>(name.size())) + name;
  return name.empty() ||
         SSL_CTX_set_alpn_protos(context, reinterpret_cast<const unsigned char*>(wire.data()),
                                 static_cast<unsigned>(wire.size())) == 0;
}

}  // namespace

Result<std::shared_ptr<Tls>> Tls::make(const TlsOptions& options) {
  const base::ForksWait until_ready;  // OpenSSL sets itself up
  std::unique_ptr<SSL_CTX, FreeSsl> context{SSL_CTX_new(TLS_client_method())};
  if (!context || SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION) != 1 ||
      !set_protocol(context.get(), options.protocol)) {
    return tls_failure("TLS cannot be started");
  }
  SSL_CTX_set_verify(context.get(), options.verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, nullptr);
  const bool trusted =
      options.ca_file.empty()
          ? SSL_CTX_set_default_verify_paths(context.get()) == 1
          : SSL_CTX_load_verify_locations(context.get(), options.ca_file.c_str(), nullptr) == 1;
  if (!trusted && options.verify) {
    ERR_clear_error();
    return fail(ErrorCode::invalid_argument,
                "cannot read certificates from the file that ca= names: " + options.ca_file);
  }
  if (auto loaded = load_own(context.get(), options); !loaded) {
    return tl::unexpected{std::move(loaded.error())};
  }
  return std::make_shared<OpenSsl>(std::move(context), options.verify);
}

}  // namespace holdfast::engines
