#include "proof/timeline.h"

#include <algorithm>
#include <array>
#include <map>
#include <sstream>
#include <utility>

namespace holdfast::proof {
namespace {

constexpr double kWidth = 1000;
constexpr double kLabels = 150;
constexpr double kRow = 34;
constexpr double kBar = 16;
constexpr double kTop = 44;
constexpr double kLabelWidth = 55;
constexpr int kTicks = 4;

constexpr const char* kStyle = R"(
body { font: 14px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 1200px; padding: 0 1em;
       color: #1d2733; background: #fff; }
h1 { font-size: 1.4em } h2 { font-size: 1.1em; margin-top: 2em }
svg { width: 100%; height: auto; border: 1px solid #d5dce4; border-radius: 6px; background: #fbfcfd }
.wait { fill: #b9c7d8 } .hold { fill: #2f7d4f } .doubt { fill: #d9a441 } .fault { fill: #d9534f22 }
.claim { fill: #7a5bb5 } .tick { stroke: #d5dce4; stroke-dasharray: 2 4 }
.mark { stroke: #1d2733; stroke-width: 1 } .axis { stroke: #d5dce4 }
text { font: 12px system-ui, sans-serif; fill: #1d2733 } .small { font-size: 10px; fill: #5c6b7a }
.key { display: flex; gap: 1.5em; flex-wrap: wrap } .key svg { width: 14px; border: 0 }
pre { background: #f4f6f8; padding: 1em; overflow-x: auto; border-radius: 6px }
@media (prefers-color-scheme: dark) {
  body { background: #14181d; color: #dbe2ea } svg { background: #1b2027; border-color: #333c47 }
  text { fill: #dbe2ea } .small { fill: #93a1b1 } .mark { stroke: #dbe2ea } .axis { stroke: #333c47 }
  .tick { stroke: #333c47 }
  pre { background: #1b2027 } .wait { fill: #4a5868 }
}
)";

std::string escaped(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    switch (c) {
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '&':
        safe += "&amp;";
        break;
      case '"':
        safe += "&quot;";
        break;
      default:
        safe += c;
    }
  }
  return safe;
}

using Row = std::pair<std::uint32_t, std::uint32_t>;  // process, thread

// Draws the events of one violation.
class Drawing {
 public:
  Drawing(const Violation& violation, const History& history) {
    for (const std::size_t place : violation.window) {
      events_.push_back(&history[place]);
    }
    for (const Event* event : events_) {
      begin_ = std::min(begin_, event->time);
      end_ = std::max(end_, event->time);
      if (event->kind < EventKind::fault) {
        rows_.try_emplace({event->process, event->thread}, 0);
      }
    }
    int number = 0;
    for (auto& [row, place] : rows_) {
      place = number++;
    }
  }

  std::string svg() {
    const double height = kTop + kRow * static_cast<double>(std::max<std::size_t>(rows_.size(), 1));
    out_ << R"(<svg role="img" viewBox="0 0 )" << kLabels + kWidth + 20 << ' ' << height + 10
         << "\">\n";
    draw_times(height);
    draw_faults(height);
    for (const auto& [row, place] : rows_) {
      draw_row(row, kTop + kRow * place);
    }
    out_ << "</svg>\n";
    return out_.str();
  }

 private:
  double x(Moment time) const {
    if (end_ == begin_) {
      return kLabels;
    }
    const double share = std::chrono::duration<double>{time - begin_}.count() /
                         std::chrono::duration<double>{end_ - begin_}.count();
    return kLabels + kWidth * std::clamp(share, 0.0, 1.0);
  }

  // The same times as in the list of events.
  void draw_times(double height) {
    for (int tick = 0; tick <= kTicks; ++tick) {
      const Moment time = begin_ + (end_ - begin_) * tick / kTicks;
      const char* anchor = tick == 0 ? "start" : tick == kTicks ? "end" : "middle";
      out_ << R"(<line class="tick" x1=")" << x(time) << "\" x2=\"" << x(time)
           << R"(" y1="18" y2=")" << height << R"("/><text class="small" text-anchor=")" << anchor
           << "\" x=\"" << x(time) << R"(" y="12">)" << to_text(time) << "</text>\n";
    }
  }

  void rectangle(const char* kind, Moment from, Moment to, double y, double height,
                 const std::string& title) {
    out_ << R"(<rect class=")" << kind << "\" x=\"" << x(from) << "\" y=\"" << y << "\" width=\""
         << std::max(x(to) - x(from), 1.0) << "\" height=\"" << height << "\"><title>"
         << escaped(title) << "</title></rect>\n";
  }

  void draw_faults(double height) {
    std::vector<const Event*> open;
    for (const Event* event : events_) {
      if (event->kind == EventKind::fault) {
        open.push_back(event);
      } else if (event->kind == EventKind::mended) {
        const auto begun = std::ranges::find_if(open, [&](const Event* fault) {
          return fault->fault == event->fault && fault->process == event->process;
        });
        if (begun != open.end()) {
          draw_fault(**begun, event->time, height);
          open.erase(begun);
        }
      }
    }
    for (const Event* fault : open) {
      draw_fault(*fault, end_, height);
    }
  }

  // Behind those whom it hits.
  void draw_fault(const Event& fault, Moment until, double height) {
    if (fault.process == kEverybody) {
      rectangle("fault", fault.time, until, kTop - 6, height - kTop, to_text(fault));
      out_ << R"(<text class="small" x=")" << x(fault.time) << "\" y=\"" << kTop - 10 << "\">"
           << to_string(fault.fault) << "</text>\n";
      return;
    }
    for (const auto& [row, place] : rows_) {
      if (row.first == fault.process) {
        rectangle("fault", fault.time, until, kTop + kRow * place - 6, kRow - 4, to_text(fault));
      }
    }
  }

  void draw_row(const Row& row, double y) {
    out_ << R"(<line class="axis" x1=")" << kLabels << "\" x2=\"" << kLabels + kWidth << "\" y1=\""
         << y + kBar / 2 << "\" y2=\"" << y + kBar / 2 << "\"/>"
         << R"(<text x="4" y=")" << y + 13 << "\">process " << row.first << '.' << row.second
         << "</text>\n";
    last_label_ = -kLabelWidth;
    const Event* called = nullptr;
    const Event* entered = nullptr;
    const Event* looked = nullptr;
    for (const Event* event : events_) {
      const bool death = event->kind == EventKind::killed && event->process == row.first;
      if (!death &&
          (event->kind >= EventKind::fault || Row{event->process, event->thread} != row)) {
        continue;
      }
      const bool over = death || event->kind == EventKind::releasing;
      if (event->kind == EventKind::called) {
        called = event;
      } else if (event->kind == EventKind::granted || event->kind == EventKind::refused) {
        if (called != nullptr) {
          rectangle("wait", called->time, event->time, y, kBar, "waits");
        }
        called = nullptr;
        entered = event->kind == EventKind::granted ? event : nullptr;
        looked = entered;
      } else if (event->kind == EventKind::alive) {
        looked = event;
      } else if (over) {
        draw_stay(entered, looked, event->time, y);
        if (death && entered != nullptr) {
          draw_claim(*looked, event->time, y);
        }
        entered = nullptr;
      }
      draw_mark(*event, y);
    }
    draw_stay(entered, looked, end_, y);
  }

  // Green: certainly held. Yellow: it may have been over.
  void draw_stay(const Event* entered, const Event* looked, Moment until, double y) {
    if (entered == nullptr) {
      return;
    }
    rectangle("doubt", looked->time, until, y, kBar, "not looked at any more");
    rectangle("hold", entered->time, looked->time, y, kBar,
              "holds, token " + std::to_string(entered->token));
  }

  // Whoever dies could not say that it no longer counts on its lease.
  void draw_claim(const Event& looked, Moment death, double y) {
    const Moment deadline{looked.value};
    if (deadline > death) {
      rectangle("claim", death, std::min(deadline, end_), y + kBar / 2 - 2, 4,
                "was told that it may count on it until " + to_text(deadline));
    }
  }

  void draw_mark(const Event& event, double y) {
    const double at = x(event.time);
    out_ << R"(<line class="mark" x1=")" << at << "\" x2=\"" << at << "\" y1=\"" << y - 3
         << "\" y2=\"" << y + kBar + 3 << "\"><title>" << escaped(to_text(event))
         << "</title></line>";
    // Where many come together the list below and the titles tell.
    if (at - last_label_ >= kLabelWidth) {
      const bool at_the_edge = at > kLabels + kWidth - kLabelWidth;
      out_ << R"(<text class="small" x=")" << (at_the_edge ? at - 2 : at + 2) << "\" y=\""
           << y + kBar + 12 << (at_the_edge ? R"(" text-anchor="end">)" : "\">")
           << escaped(to_string(event.kind)) << "</text>";
      last_label_ = at;
    }
    out_ << '\n';
  }

  std::vector<const Event*> events_;
  std::map<Row, int> rows_;
  Moment begin_ = Moment::max();
  Moment end_ = Moment::min();
  double last_label_ = 0;
  std::ostringstream out_;
};

// What the colours mean.
std::string legend() {
  constexpr std::array<std::pair<const char*, const char*>, 5> kMeanings{{
      {"wait", "waits"},
      {"hold", "certainly holds"},
      {"doubt", "may still hold; not looked at any more"},
      {"claim", "is dead, and was told that it may count on the lock for so long"},
      {"fault", "a fault is on"},
  }};
  std::string html = R"(<p class="key">)";
  for (const auto& [kind, meaning] : kMeanings) {
    html += std::string{R"(<span><svg viewBox="0 0 14 14"><rect class=")"} + kind +
            R"(" width="14" height="14"/></svg> )" + meaning + "</span>";
  }
  return html + "</p>\n";
}

}  // namespace

std::string timeline_page(const std::vector<Violation>& violations, const History& history,
                          const std::string& title) {
  std::ostringstream page;
  page << "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\">\n<meta name=\"viewport\" "
          "content=\"width=device-width\">\n<title>"
       << escaped(title) << "</title>\n<style>" << kStyle << "</style>\n<h1>" << escaped(title)
       << "</h1>\n";
  page << (violations.empty() ? "" : legend());
  if (violations.empty()) {
    page << "<p>No property was violated.</p>\n";
  }
  for (const Violation& violation : violations) {
    page << "<h2>" << escaped(violation.property + ": " + violation.text) << "</h2>\n";
    if (!violation.window.empty()) {
      page << Drawing{violation, history}.svg() << "<pre>";
      for (const std::size_t place : violation.window) {
        page << escaped(to_text(history[place])) << '\n';
      }
      page << "</pre>\n";
    }
  }
  page << "</html>\n";
  return page.str();
}

}  // namespace holdfast::proof
