//! The topology as a tree of lines.

use std::fmt::Write as _;

use fastpath_host::pci::{Function, PciFacts, Role};
use fastpath_verdict::path::PathVerdict;

use super::{Tree, acs, belongs, best, host_bridge, kind, lanes, nothing};
use crate::style::{BOLD, DIM, clean, status_style, styled, verdict_style};

/// The topology as text, at most `width` columns wide: what does not fit beside a device goes below it. GPUs and drives show the
/// best verdict of their `paths`.
pub fn topology_text(facts: &PciFacts, paths: &[PathVerdict], width: usize) -> String {
    let tree = Tree::new(facts);
    let mut page = Page { facts, paths, tree: &tree, width: width.max(40), out: String::new() };
    for (name, below) in &tree.roots {
        page.root(name, below);
    }
    page.lost();
    if tree.roots.is_empty() && tree.lost.is_empty() {
        let _ = writeln!(page.out, "{}", clean(&nothing(facts)));
    }
    page.out
}

struct Page<'a> {
    facts: &'a PciFacts,
    paths: &'a [PathVerdict],
    tree: &'a Tree<'a>,
    width: usize,
    out: String,
}

/// A piece of a line with its style.
type Part = (anstyle::Style, String);

impl Page<'_> {
    fn root(&mut self, name: &str, below: &[usize]) {
        if !self.out.is_empty() {
            self.out.push('\n');
        }
        let bridge = host_bridge(self.facts, name);
        let head = format!("root bus {}", clean(name.trim_start_matches("pci")));
        let mut parts = Vec::new();
        parts.extend(bridge.map(|bridge| (DIM, format!("host bridge {bridge}"))));
        self.line("", "", (BOLD, head), &parts);
        self.children(below, "");
    }

    /// Depth is bounded by the reader, so the stack is.
    fn children(&mut self, nodes: &[usize], indent: &str) {
        let shown: Vec<usize> = nodes
            .iter()
            .copied()
            .filter(|&node| self.tree.nodes[node].function.role != Role::Other)
            .collect();
        for (number, &node) in shown.iter().enumerate() {
            let last = number + 1 == shown.len();
            let (branch, trunk) = if last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
            let node = &self.tree.nodes[node];
            let (head, parts) = self.describe(node.function);
            let below = if node.children.is_empty() { "  " } else { "│ " };
            let more = format!("{indent}{trunk}{below}");
            self.line(&format!("{indent}{branch}"), &more, head, &parts);
            self.children(&node.children, &format!("{indent}{trunk}"));
        }
    }

    fn describe(&self, function: &Function) -> (Part, Vec<Part>) {
        let plain = anstyle::Style::new();
        let head = format!("{} {}", function.address, kind(function));
        let style = if function.role == Role::Bridge { plain } else { BOLD };
        let mut parts: Vec<Part> = vec![(plain, function.id())];
        parts.extend(function.driver.value().map(|name| (plain, clean(name))));
        if let Some(lanes) = lanes(function) {
            parts.push((plain, lanes.now));
            let warn = status_style(fastpath_verdict::Status::Warn);
            parts.extend(lanes.most.map(|most| (warn, format!("of {most}"))));
        }
        parts.extend(acs(function).map(|acs| (plain, acs.to_owned())));
        parts.extend(belongs(self.facts, function).into_iter().map(|part| (DIM, clean(&part))));
        if let Some(verdict) = best(self.paths, &function.address) {
            parts.push((verdict_style(verdict), verdict.as_str().to_owned()));
        }
        ((style, head), parts)
    }

    /// A line with what fits on it; the rest goes on below, behind `more`.
    fn line(&mut self, start: &str, more: &str, (style, head): Part, parts: &[Part]) {
        let _ = write!(self.out, "{start}{}", styled(style, &head));
        let mut column = start.chars().count() + head.chars().count();
        for (style, part) in parts {
            let length = part.chars().count();
            if column + 2 + length > self.width {
                let _ = write!(self.out, "\n{more}");
                column = more.chars().count();
            } else {
                self.out.push_str("  ");
                column += 2;
            }
            self.out.push_str(&styled(*style, part));
            column += length;
        }
        self.out.push('\n');
    }

    fn lost(&mut self) {
        for function in &self.tree.lost {
            let why = clean(function.place.why());
            let _ = writeln!(
                self.out,
                "{} {}: its place cannot be told, {why}",
                function.address,
                kind(function)
            );
        }
    }
}
