//! Measures a machine for some seconds and prints the verdict:
//! `cargo run -p rtproof-run --example prove`.

#![allow(clippy::print_stdout, reason = "an example prints its answer")]

use rtproof_host::{Facts, Root};
use rtproof_judge::Report;
use rtproof_run::prove::{self, NoSwitcher, Output, Request, SilentObserver};

fn main() -> anyhow::Result<()> {
    let root = Root::live();
    let facts = Facts::read(&root);
    let request = Request {
        budget_ns: Some(100_000),
        // A load needs a program that becomes its worker: see `rtproof_run::load_worker`.
        load: Some("idle".parse()?),
        ..Request::new(5_000_000_000, ".")
    };
    let options = prove::resolve_options(&request, &facts)?;
    let output = Output::choose(&request.output, &facts)?;
    let (mut switcher, mut observer) = (NoSwitcher, SilentObserver);
    let finished =
        prove::measure(&root, facts, &options, None, &output, &mut switcher, &mut observer)?;
    let report = Report::new(&finished.run, &finished.integrity());
    let sealed = finished.seal(&report)?;
    println!("{} {}", report.verdict.answer.text(), report.verdict.sentence);
    println!("record {}, {} threads", output.record.display(), sealed.run.threads.len());
    sealed.failure.map_or(Ok(()), Err)
}
