#include "lockstep/dash/page.h"

#include <ctime>
#include <utility>

#include "lockstep/base/text.h"
#include "lockstep/dash/html.h"
#include "lockstep/dash/sections.h"
#include "lockstep/launch/runs/run_table.h"
#include "lockstep/train/folder/run_files.h"

namespace lockstep::dash {
namespace {

constexpr const char* kStyle = R"(
:root{color-scheme:light dark;--ink:#1b1f24;--dim:#68717d;--paper:#fff;--card:#f6f7f9;--rule:#d9dde3}
@media(prefers-color-scheme:dark){:root{--ink:#e4e7eb;--dim:#98a2ae;--paper:#14171b;--card:#1d2126;--rule:#343a42}}
*{box-sizing:border-box}body{margin:0 auto;padding:1rem 1.5rem 3rem;max-width:1800px;background:var(--paper);color:var(--ink);
font:14px/1.45 system-ui,sans-serif}h1{font-size:1.35rem;margin:.2rem 0}h2{font-size:1rem;margin:1.2rem 0 .4rem}
h1 small{font-size:.8rem;padding:.15rem .5rem;border-radius:1rem;background:var(--card);border:1px solid var(--rule);
vertical-align:middle}.state0{color:#0b7a4b}.state1{color:#2a6fdb}.state3,.state4{color:#c62f2f}
.facts span{margin-right:1.2rem;color:var(--dim)}.facts b{color:var(--ink);font-variant-numeric:tabular-nums}
progress{width:100%;height:.5rem}.charts{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,440px),1fr));
gap:1rem;margin-top:1rem}figure{margin:0;padding:.6rem .8rem;background:var(--card);border:1px solid var(--rule);
border-radius:.5rem}figcaption{font-weight:600}.legend{margin:.1rem 0;color:var(--dim);font-size:.85rem}
.legend span{margin-right:.9rem;white-space:nowrap}.legend b{color:var(--ink);font-weight:500}.legend i{display:inline-block;
width:.9em;height:.25em;margin-right:.3em;vertical-align:middle;background:var(--c)}.legend em{color:#c62f2f}svg{width:100%;
height:auto;display:block}svg text{fill:var(--dim);font-size:12px}svg .left{text-anchor:end}svg .mid{text-anchor:middle}
.grid{stroke:var(--rule);stroke-width:1}.axis{stroke:var(--dim);stroke-width:1}polyline{fill:none;stroke:var(--c);
stroke-width:1.6;stroke-linejoin:round}polygon{fill:var(--c);opacity:.18}circle{fill:var(--c)}
.c0{--c:#2a6fdb}.c1{--c:#d9661f}.c2{--c:#2b9a66}.c3{--c:#a640b8}.c4{--c:#c9a227}.c5{--c:#1f9bb3}.c6{--c:#d1406b}.c7{--c:#7a7f87}
pre{padding:.7rem .9rem;background:var(--card);border:1px solid var(--rule);border-radius:.5rem;overflow:auto;font-size:12px}
table{border-collapse:collapse}th{text-align:left;font-weight:500;color:var(--dim);padding:.1rem 1.2rem .1rem 0}
.failures p{margin:.3rem 0}.failures span{margin-right:1.2rem;color:var(--dim)}.failures b{color:var(--ink)}
.gone header:before{content:'The dashboard has ended: this is how the run stood.';color:#c62f2f}
)";

// The page is renewed in place: what somebody has opened stays open.
constexpr const char* kScript = R"(const main = document.querySelector('main');
async function renew() {
  try {
    const answer = await fetch('content', {cache: 'no-store'});
    if (answer.ok) {
      const opened = [...main.querySelectorAll('details')].map(each => each.open);
      main.innerHTML = await answer.text();
      main.querySelectorAll('details').forEach((each, i) => { each.open = opened[i] ?? each.open; });
      document.body.classList.remove('gone');
    }
  } catch {
    document.body.classList.add('gone');
  }
  setTimeout(renew, document.hidden ? 10000 : 2000);
}
setTimeout(renew, 2000);
)";

}  // namespace

RunPage::RunPage(std::string folder) : folder_(std::move(folder)), history_(train::RunFiles{folder_}.metrics()) {}

std::string RunPage::content() {
  history_.refresh();
  return cat(heading(launch::facts_of_run(folder_), std::time(nullptr)), results(folder_), charts(history_),
             failures(folder_), log_tail(folder_), options(folder_));
}

std::string RunPage::page(bool live) {
  return cat("<!doctype html>\n<html lang='en'><head><meta charset='utf-8'><title>", escaped(folder_),
             "</title><meta name='viewport' content='width=device-width'><style>", kStyle,
             "</style></head>\n<body><main>\n", content(), "</main>",
             live ? cat("<script src='", kScriptPath + 1, "'></script>") : "", "</body></html>\n");
}

std::string RunPage::facts_json() const {
  return launch::runs_json({launch::facts_of_run(folder_)}, std::time(nullptr));
}

std::string script() { return kScript; }

}  // namespace lockstep::dash
