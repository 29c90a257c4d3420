//! trace.dat files, to their events and out again.
#![no_main]
#![allow(clippy::disallowed_methods, reason = "the macro of libfuzzer opens files")]

use rtproof_trace::{
    Decoder, Pages, RingPage, Window,
    dat::{TraceDat, write_window},
};

/// Events that are taken: small files unpack to large ones.
const EVENTS_MAX: usize = 20_000;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let _ = read(bytes);
});

fn read(bytes: &[u8]) -> Option<()> {
    let dat = TraceDat::open(bytes).ok()?;
    let symbols = dat.symbols();
    let mut decoder = Decoder::new(dat.formats()).with_strings(dat.strings().clone());
    if let Some(start) = symbols.as_ref().ok().and_then(|symbols| symbols.text_start()) {
        decoder = decoder.with_text_start(start);
    }
    let mut pages = dat.pages(dat.main_buffer()?).ok()?;
    let mut window = Window::default();
    let mut page = Vec::new();
    for cpu in pages.cpus().to_vec() {
        for index in 0..pages.count(cpu).min(1_000) {
            let Ok(()) = pages.read(cpu, index, &mut page) else { break };
            let Ok(page) = RingPage::parse(decoder.layout(), &page) else { continue };
            let room = EVENTS_MAX.saturating_sub(window.events.len());
            let records = page.records().map_while(Result::ok).take(room);
            window.events.extend(records.map(|raw| decoder.event(cpu, &raw)));
        }
    }
    if let Some(scale) = dat.tsc() {
        scale.apply(&mut window);
    }
    if let (Ok(symbols), Some(event)) = (&symbols, window.events.first()) {
        let _ = symbols.name(event.at_ns);
    }
    // A CPU of our files has a place in a table.
    window.events.retain(|event| event.cpu < 1_024);
    let mut ours = Vec::new();
    write_window(&window, "mono", &mut ours).expect("memory takes everything");
    TraceDat::open(ours.as_slice()).expect("what was written");
    Some(())
}
