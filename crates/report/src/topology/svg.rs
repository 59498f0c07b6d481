//! The topology as a picture that needs no other file.

use std::fmt::Write as _;

use fastpath_host::pci::{Address, Function, PciFacts, Role};
use fastpath_verdict::Verdict;
use fastpath_verdict::path::PathVerdict;

use super::{Tree, acs, belongs, best, host_bridge, kind, lanes, nothing};
use crate::style::escape;

/// Sizes, in pixels of the picture at its natural size.
const ROW: usize = 58;
const INDENT: usize = 36;
const BOX: usize = 510;
const HEIGHT: usize = 46;
const MARGIN: usize = 24;
const TOP: usize = 64;
const LEGEND: usize = 116;

/// More arcs hide each other; the report lists every path.
const MOST_ARCS: usize = 64;

/// How far the arcs of paths reach out of the boxes.
const REACH: usize = 280;

/// The topology as SVG: one box for each device, in the order of the tree, and an arc for each path between a GPU and a drive,
/// coloured by its verdict. It follows the reader's light or dark preference, and its text can be selected.
pub fn topology_svg(facts: &PciFacts, paths: &[PathVerdict]) -> String {
    let tree = Tree::new(facts);
    let mut drawing = Drawing { facts, paths, tree: &tree, rows: Vec::new(), body: String::new() };
    for (name, below) in &tree.roots {
        drawing.root(name, below);
    }
    drawing.finish()
}

/// Where the box of a function is.
struct Placed<'a> {
    function: Option<&'a Function>,
    x: usize,
    y: usize,
}

struct Drawing<'a> {
    facts: &'a PciFacts,
    paths: &'a [PathVerdict],
    tree: &'a Tree<'a>,
    rows: Vec<Placed<'a>>,
    body: String,
}

impl<'a> Drawing<'a> {
    fn root(&mut self, name: &str, below: &[usize]) {
        let bridge = host_bridge(self.facts, name);
        let title = format!("root bus {}", name.trim_start_matches("pci"));
        let detail = bridge.map_or_else(String::new, |bridge| format!("host bridge {bridge}"));
        let at = self.place(None, 0);
        self.draw_box(at, "root", &title, &detail, "");
        self.children(below, at, 1);
    }

    fn children(&mut self, nodes: &[usize], parent: usize, depth: usize) {
        for &node in nodes {
            let tree = self.tree;
            let node = &tree.nodes[node];
            if node.function.role == Role::Other {
                continue;
            }
            let at = self.place(Some(node.function), depth);
            self.connect(parent, at);
            self.function(at, node.function);
            self.children(&node.children, at, depth + 1);
        }
    }

    fn place(&mut self, function: Option<&'a Function>, depth: usize) -> usize {
        let y = TOP + self.rows.len() * ROW;
        self.rows.push(Placed { function, x: MARGIN + depth * INDENT, y });
        self.rows.len() - 1
    }

    fn function(&mut self, at: usize, function: &Function) {
        let class = match function.role {
            Role::Gpu => "gpu",
            Role::Nvme => "nvme",
            Role::Nic => "nic",
            Role::Bridge | Role::Other => "bridge",
        };
        let title = format!("{} {}", function.address, kind(function));
        let mut details = vec![function.id()];
        details.extend(function.driver.value().cloned());
        details.extend(belongs(self.facts, function));
        let mut notes = String::new();
        if let Some(lanes) = lanes(function) {
            let (class, text) = match lanes.most {
                Some(most) => ("narrow", format!("{} of {most}", lanes.now)),
                None => ("wide", lanes.now),
            };
            notes = format!("<tspan class=\"{class}\">{}</tspan>", escape(&text));
        }
        if let Some(text) = acs(function) {
            let class = match text {
                "ACS redirect on" => "on",
                "ACS redirect off" => "off",
                _ => "unsure",
            };
            let gap = if notes.is_empty() { "" } else { " · " };
            let _ = write!(notes, "{gap}<tspan class=\"{class}\">{text}</tspan>");
        }
        if let Some(verdict) = best(self.paths, &function.address) {
            let gap = if notes.is_empty() { "" } else { " · " };
            let _ = write!(notes, "{gap}<tspan class=\"{0}\">{0}</tspan>", verdict.as_str());
        }
        self.draw_box(at, class, &title, &details.join(" · "), &notes);
    }

    /// `notes` is markup already.
    fn draw_box(&mut self, at: usize, class: &str, title: &str, detail: &str, notes: &str) {
        let Placed { x, y, .. } = self.rows[at];
        let (title, detail) = (escape(title), escape(detail));
        let _ = write!(
            self.body,
            "<g><rect class=\"box {class}\" x=\"{x}\" y=\"{y}\" width=\"{BOX}\" height=\"{HEIGHT}\" rx=\"6\"/>\
             <text class=\"title\" x=\"{}\" y=\"{}\">{title}</text>\
             <text class=\"detail\" x=\"{}\" y=\"{}\">{detail}</text>",
            x + 12,
            y + 19,
            x + 12,
            y + 37
        );
        if !notes.is_empty() {
            let _ = write!(
                self.body,
                "<text class=\"notes\" x=\"{}\" y=\"{}\">{notes}</text>",
                x + BOX - 12,
                y + 19
            );
        }
        self.body.push_str("</g>\n");
    }

    /// The line from a bridge down to what hangs below it.
    fn connect(&mut self, parent: usize, at: usize) {
        let (from, to) = (&self.rows[parent], &self.rows[at]);
        let x = from.x + INDENT / 2;
        let _ = writeln!(
            self.body,
            "<path class=\"wire\" d=\"M{x} {}V{}H{}\"/>",
            from.y + HEIGHT,
            to.y + HEIGHT / 2,
            to.x
        );
    }

    /// Arcs between GPUs and drives, right of the boxes; good ones last, so that they are on top.
    fn arcs(&self, right: usize) -> String {
        let row = |address: &Address| {
            self.rows.iter().find(|row| row.function.is_some_and(|one| one.address == *address))
        };
        let mut out = String::new();
        let rank = |verdict: Verdict| match verdict {
            Verdict::Unsupported => 0,
            Verdict::Unknown => 1,
            Verdict::Supported => 2,
            Verdict::Blocked => 3,
        };
        let mut paths: Vec<&PathVerdict> = self.paths.iter().take(MOST_ARCS).collect();
        paths.sort_by_key(|path| rank(path.verdict));
        for path in paths {
            let (Some(gpu), Some(nvme)) = (row(&path.gpu), row(&path.nvme)) else { continue };
            let (x1, y1) = (gpu.x + BOX, gpu.y + HEIGHT / 2);
            let (x2, y2) = (nvme.x + BOX, nvme.y + HEIGHT / 2);
            let bend = right.max(x1.max(x2)) + (y1.abs_diff(y2) / 3).min(REACH);
            let (verdict, reason) = (path.verdict.as_str(), path.reason.as_str());
            let _ = writeln!(
                out,
                "<path class=\"arc {verdict}\" d=\"M{x1} {y1}C{bend} {y1} {bend} {y2} {x2} {y2}\">\
                 <title>{} and {}: {verdict}, {reason}</title></path>",
                path.gpu, path.nvme
            );
        }
        out
    }

    fn finish(self) -> String {
        let right = self.rows.iter().map(|row| row.x + BOX).max().unwrap_or(MARGIN + BOX);
        let arcs = self.arcs(right);
        let room = if arcs.is_empty() { MARGIN } else { REACH };
        let width = right + room;
        let bottom = TOP + self.rows.len().max(1) * ROW;
        let height = bottom + LEGEND;
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
             role=\"img\" aria-label=\"PCIe topology\">\n<style>{STYLE}</style>\n\
             <rect class=\"page\" width=\"{width}\" height=\"{height}\"/>\n\
             <text class=\"heading\" x=\"{MARGIN}\" y=\"38\">PCIe topology</text>\n"
        );
        if self.rows.is_empty() {
            let why = nothing(self.facts);
            let _ = writeln!(
                out,
                "<text class=\"detail\" x=\"{MARGIN}\" y=\"{}\">{}</text>",
                TOP + 20,
                escape(&why)
            );
        }
        out.push_str(&arcs);
        out.push_str(&self.body);
        legend(&mut out, bottom, self.paths);
        out.push_str("</svg>\n");
        out
    }
}

fn legend(out: &mut String, top: usize, paths: &[PathVerdict]) {
    let devices = [
        ("root", "root bus"),
        ("bridge", "bridge"),
        ("gpu", "GPU"),
        ("nvme", "NVMe drive"),
        ("nic", "network"),
    ];
    for (at, (class, name)) in devices.into_iter().enumerate() {
        let (x, y) = (MARGIN + at * 124, top + 18);
        let _ = writeln!(
            out,
            "<rect class=\"box {class}\" x=\"{x}\" y=\"{y}\" width=\"18\" height=\"14\" rx=\"3\"/>\
             <text class=\"detail\" x=\"{}\" y=\"{}\">{name}</text>",
            x + 26,
            y + 12
        );
    }
    let verdicts = [Verdict::Supported, Verdict::Unknown, Verdict::Unsupported, Verdict::Blocked];
    for (at, verdict) in verdicts.into_iter().filter(|_| !paths.is_empty()).enumerate() {
        let (x, y) = (MARGIN + at * 140, top + 56);
        let _ = writeln!(
            out,
            "<path class=\"arc {0}\" d=\"M{x} {y}h24\"/><text class=\"detail\" x=\"{1}\" y=\"{2}\">{0}</text>",
            verdict.as_str(),
            x + 32,
            y + 4
        );
    }
    if paths.len() > MOST_ARCS {
        let _ = writeln!(
            out,
            "<text class=\"detail\" x=\"{MARGIN}\" y=\"{}\">the first {MOST_ARCS} of {} paths are drawn</text>",
            top + 90,
            paths.len()
        );
    }
}

/// Verdicts differ in their dashes too, not in colour alone.
const STYLE: &str = "
svg{--page:#ffffff;--ink:#1b1f24;--soft:#57606a;--wire:#8c959f;--root:#eaeef2;--bridge:#f6f8fa;--gpu:#fde8e4;--nvme:#e2f0fd;--nic:#efe7fb;\
--good:#1a7f37;--open:#9a6700;--bad:#cf222e;color-scheme:light dark}
@media (prefers-color-scheme:dark){svg{--page:#0d1117;--ink:#e6edf3;--soft:#9da7b1;--wire:#6e7681;--root:#262c36;--bridge:#161b22;\
--gpu:#4a1f1a;--nvme:#14304d;--nic:#33224d;--good:#3fb950;--open:#d29922;--bad:#ff7b72}}
text{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,'Liberation Mono',monospace;font-size:12px;fill:var(--ink)}
.page{fill:var(--page)}
.heading{font-size:18px;font-weight:600}
.title{font-weight:600}
.detail{fill:var(--soft)}
.notes{text-anchor:end;fill:var(--soft);font-size:11px}
.box{stroke:var(--wire);stroke-width:1}
.root{fill:var(--root)}.bridge{fill:var(--bridge)}.gpu{fill:var(--gpu)}.nvme{fill:var(--nvme)}.nic{fill:var(--nic)}
.wire{fill:none;stroke:var(--wire);stroke-width:1.5}
.arc{fill:none;stroke-width:2}
.arc.supported{stroke:var(--good)}
.arc.unknown{stroke:var(--open);stroke-dasharray:6 4}
.arc.unsupported{stroke:var(--bad);stroke-dasharray:2 4}
.arc.blocked{stroke:var(--bad);stroke-width:4}
tspan.supported,tspan.off{fill:var(--good)}
tspan.unknown,tspan.unsure,tspan.narrow{fill:var(--open)}
tspan.unsupported,tspan.blocked,tspan.on{fill:var(--bad)}
";
