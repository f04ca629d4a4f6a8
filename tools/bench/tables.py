"""The tables of one engine."""

import statistics

from targets import AT_THE_SERVER, EMBEDDED_FIGURES, FIGURES, RATIOS, SCENARIOS


def table(engine, scenarios, ours, theirs, limits):
    rows, missed = [], []

    def row(scenario, what, value, target, good):
        rows.append(f"| {scenario} | {what} | {value} | {target} | {'yes' if good else '**no**'} |")
        if not good:
            missed.append(f"{engine} {scenario}: {what}: {value}")

    for scenario in filter(ours.__contains__, scenarios):
        medians = {field: statistics.median(values) for field, values in ours[scenario].items()}
        if scenario in RATIOS[engine]:
            field, baseline, name, met, target = RATIOS[engine][scenario]
            if baseline in SCENARIOS:
                base = statistics.median(ours[baseline][field]) if baseline in ours else None
            else:
                base = statistics.median(theirs[scenario])
            if base:
                ratio = medians[field] / base
                row(scenario, f"ratio to {name}", f"{ratio:.2f}", target, met(ratio))
                for what, figures in limits.get(scenario, {}).items():
                    least = statistics.median(figures) / base
                    rows.append(f"| {scenario} | {what}: ratio to the same | {least:.2f} | | |")
        embedded = EMBEDDED_FIGURES.get(scenario, []) if engine == "sqlite" else []
        server = []
        if engine in AT_THE_SERVER and "commands_per_s" in medians:
            most, waiting, holding = AT_THE_SERVER[engine]
            limit = holding if scenario == "L100k" else waiting
            if scenario != "L100k":
                most *= 2
            server = [("connections", "connections" if scenario == "L100k" else
                       "connections, of the holder's and the waiters' clients",
                       lambda v, m=most: v <= m, f"at most {most}")]
            if limit:
                server.append(("commands_per_s", "commands/s at the server",
                               lambda v, m=limit: v <= m, f"at most {limit}"))
        for field, unit, met, target in FIGURES.get(scenario, []) + embedded + server:
            row(scenario, unit, f"{medians[field]:.3g}" if medians[field] < 100
                else f"{medians[field]:.0f}", target, met(medians[field]))
    return rows, missed


def chapter(engine, rows, ours, theirs):
    lines = ["| scenario | what | measured | wanted | reached |",
             "|---|---|---|---|---|", *rows, "",
             "The figures behind the ratios, only good for comparing with each other:", "",
             "| scenario | figure | ours | baseline |", "|---|---|---|---|"]
    for scenario, fields in ours.items():
        for field, values in fields.items():
            base = ""
            if scenario in theirs and field == RATIOS[engine][scenario][0]:
                base = f"{statistics.median(theirs[scenario]):,.0f}"
            value = statistics.median(values)
            lines.append(f"| {scenario} | {field} | {value:,.3g} | {base} |" if value < 100
                         else f"| {scenario} | {field} | {value:,.0f} | {base} |")
    return [*lines, ""]
