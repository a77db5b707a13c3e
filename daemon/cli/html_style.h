// The style sheet of the HTML report and its hash. The report's content security policy permits only this
// style sheet. A test checks that they match.
#pragma once

#include <string_view>

namespace culprit::cli {

constexpr std::string_view kStyle =
    R"(:root{color-scheme:light dark;--bg:#f6f7f9;--card:#fff;--ink:#1b1f24;--soft:#5a6472;--line:#d9dee5;
--code:#f0f2f5;--alarm:#b42318;--caution:#9a6700;--good:#1a7f37;--link:#0b5cad;--mark:#d9480f;
--mark2:#8f2a05;
--h1:#d3e3f5;--h2:#b0cdec;--h3:#83aedb;--h4:#3f7cb8;--h5:#174a7e;--gap:#f3f4f6}
@media(prefers-color-scheme:dark){:root{--bg:#0f1317;--card:#171c22;--ink:#e4e8ed;--soft:#98a3b0;
--line:#2b333c;
--code:#10151a;--alarm:#ff7b72;--caution:#e3b341;--good:#56d364;--link:#7ab7f5;--mark:#ff9142;
--mark2:#ffc089;
--h1:#16293d;--h2:#1d4166;--h3:#2c659e;--h4:#5295d6;--h5:#a5d0fb;--gap:#12171c}}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--ink);
font:15px/1.5 system-ui,-apple-system,"Segoe UI",sans-serif}
main{max-width:1120px;margin:0 auto;padding:16px}
section,header{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:14px 18px;
margin:0 0 14px}
header{border-left:6px solid var(--good)}
header.alarm{border-left-color:var(--alarm)}
header.caution{border-left-color:var(--caution)}
h1{font-size:1.35rem;line-height:1.3;margin:0 0 6px;overflow-wrap:anywhere}
h2{font-size:1.02rem;margin:0 0 8px}
h3{font-size:.95rem;margin:14px 0 4px}
p{margin:4px 0}
ul{margin:4px 0;padding-left:20px}
li{overflow-wrap:anywhere}
.soft{color:var(--soft);font-size:.88rem}
.do{font-weight:600}
.stopped{color:var(--caution);font-weight:600}
code,pre,.mono{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;font-size:.84rem}
pre{background:var(--code);border-radius:6px;padding:8px 10px;margin:2px 0 10px;white-space:pre-wrap;
overflow-wrap:anywhere}
code{overflow-wrap:anywhere}
.at{color:var(--link);font-family:ui-monospace,monospace;font-size:.84rem;overflow-wrap:anywhere;
margin-top:8px}
.chip{display:inline-block;border:1px solid var(--line);border-radius:10px;padding:0 8px;
margin:1px 4px 1px 0;font-size:.8rem;color:var(--soft)}
details{margin:4px 0}
summary{cursor:pointer;overflow-wrap:anywhere}
table{border-collapse:collapse;width:100%}
th{text-align:left;font-weight:600;font-size:.82rem;color:var(--soft);border-bottom:1px solid var(--line);
padding:4px 10px 4px 0;white-space:nowrap}
td{vertical-align:top;border-bottom:1px solid var(--line);padding:6px 10px 6px 0;overflow-wrap:anywhere}
tr:last-child td{border-bottom:0}
.n{font-variant-numeric:tabular-nums;white-space:nowrap}
.chart{display:grid;grid-template-columns:minmax(5rem,10rem) minmax(0,1fr);column-gap:8px;row-gap:1px}
.chart svg{display:block;width:100%}
.name{font-size:.78rem;line-height:14px;height:14px;overflow:hidden;text-overflow:ellipsis;
white-space:nowrap;text-align:right;color:var(--soft)}
.name.hot{color:var(--ink);font-weight:700}
.side{font-size:.78rem;color:var(--soft);text-align:right}
.rest{grid-column:1/3;height:7px}
.row{height:14px}
.plot{height:150px}
.axis{height:20px}
.axis text,.plot text{font-size:11px;fill:var(--soft)}
.axis text.out{fill:#fff;font-weight:600}
.plot text.alarm{fill:var(--alarm);font-weight:700}
.plot rect{fill:var(--gap)}
.progress{fill:none;stroke:var(--h4);stroke-width:2;vector-effect:non-scaling-stroke}
.usual{fill:none;stroke:var(--soft);stroke-width:1.5;stroke-dasharray:4 3;vector-effect:non-scaling-stroke}
.slow{fill:var(--mark);opacity:.3}.plot rect.slow{fill:var(--mark)}
.when{stroke:var(--soft);stroke-width:1.5;stroke-dasharray:4 3}
.when.alarm,.now{stroke:var(--alarm);stroke-width:2;stroke-dasharray:none}
.now{vector-effect:non-scaling-stroke;stroke-width:1.5}
.rug{stroke:var(--mark);stroke-width:2}
.l0{fill:var(--gap)}.l1{fill:var(--h1)}.l2{fill:var(--h2)}.l3{fill:var(--h3)}.l4{fill:var(--h4)}.l5{
fill:var(--h5)}
.x1{fill:var(--mark)}.x2{fill:var(--mark2)}
.key{display:flex;flex-wrap:wrap;gap:4px 14px;margin:8px 0 0;font-size:.8rem;color:var(--soft);
align-items:center}
.key svg{outline:1px solid var(--line);width:14px;height:12px;vertical-align:-1px;margin-right:4px}
@media(max-width:640px){main{padding:8px}section,header{padding:10px 12px}h1{font-size:1.15rem}
.chart{grid-template-columns:4.6rem minmax(0,1fr);column-gap:5px}.half{display:none}
table,tbody{display:block}thead{display:none}tr{display:block;border-bottom:1px solid var(--line);
padding:6px 0}
td{display:block;border:0;padding:1px 0}td.n{display:inline;text-align:left;margin-right:10px}
td[data-is]:before{content:attr(data-is) " ";color:var(--soft);font-size:.8rem}})";

// SHA-256 of kStyle in base64, for Content-Security-Policy.
constexpr std::string_view kStyleHash = "sha256-O794vrT0lUl/ewtz9fAxvdhg50EjtvDc4+SEtqd7UtY=";

}  // namespace culprit::cli
