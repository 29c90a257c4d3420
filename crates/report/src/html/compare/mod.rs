//! Runs side by side as one HTML file: the answer first, then the numbers, the pictures, what
//! differs between the runs and why they were late, and every run and thread by itself.

mod beside;
mod numbers;
mod over;
mod page;
mod pictures;
mod runs;
mod verdict;

use maud::{Markup, html};

use super::{parts, reference};

pub use self::page::{Figure, Page};

impl Page<'_> {
    /// The page as a document.
    pub fn render(&self) -> String {
        let names: Vec<&str> = self.groups.iter().map(|group| group.label.as_str()).collect();
        let title = match names.as_slice() {
            [a, b] => format!("{a} and {b}"),
            names => format!("{} runs", names.len()),
        };
        let body = html! {
            a.skip href="#verdict" { "Skip to the answer" }
            @for banner in &self.banners { (parts::banner(banner)) }
            header {
                p.tool { "rtproof · comparison" }
                h1 { (title) }
                p { (self.about()) }
            }
            main {
                (verdict::section(self))
                (self.contents())
                (pictures::section(self))
                (over::section(self))
                (reference::section(&self.comparison.reference))
                (numbers::section(self.comparison))
                (beside::causes(self.comparison))
                (beside::facts(self))
                (parts::folded("Runs and threads", &runs::section(self.comparison)))
                (parts::folded("How it was compared", &runs::method(self.comparison)))
            }
            footer {
                p {
                    "Made by rtproof " (env!("CARGO_PKG_VERSION")) ". This file holds the "
                    "whole comparison as JSON in the element " code { "rtproof-compare" }
                    "."
                }
            }
            (parts::data("rtproof-compare", self.comparison))
            (parts::script())
        };
        parts::page(&format!("{title} compared"), Some(env!("CARGO_PKG_VERSION")), &body)
    }

    /// Machines and tools in a line.
    fn about(&self) -> String {
        let mut parts: Vec<String> = Vec::new();
        let runs = || self.comparison.groups.iter().flat_map(|group| &group.runs);
        for run in runs() {
            let place = run.machine.as_ref().and_then(|place| place.hostname.clone());
            for part in place.into_iter().chain([run.tool.clone(), run.workload.clone()]) {
                if !part.is_empty() && !parts.contains(&part) && parts.len() < 6 {
                    parts.push(part);
                }
            }
        }
        parts.join(" · ")
    }

    fn contents(&self) -> Markup {
        let mut sections =
            vec![("pictures", "Pictures"), ("time", "Over time"), ("numbers", "Numbers")];
        if !self.comparison.reference.is_empty() {
            sections.insert(2, ("reference", "Reference"));
        }
        if !self.comparison.causes.is_empty() {
            sections.push(("causes", "Why they were late"));
        }
        sections.push(("facts", "What else differs"));
        sections.extend([("runs", "Runs and threads"), ("method", "How it was compared")]);
        parts::contents(sections.into_iter())
    }
}
