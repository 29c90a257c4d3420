//! tmp
#![allow(clippy::all, clippy::print_stdout, clippy::disallowed_methods, missing_docs)]
use rtproof_host::*;
use rtproof_measure::{recorder::*, *};
use std::time::*;
fn main() {
    let root = Root::live();
    let t = Instant::now();
    let s = rtproof_host::symbols::Symbols::read(&root);
    let s = s.value().unwrap();
    println!("symbols {} in {:?}, {} bytes", s.len(), t.elapsed(), s.bytes());
    let t = Instant::now();
    for _ in 0..1000 {
        s.lookup(0xffffffff81234567);
    }
    println!("lookup {:?}/1000", t.elapsed());
    let t = Instant::now();
    for _ in 0..1000 {
        rtproof_host::task::task(&root, std::process::id() as i32);
    }
    println!("task {:?}/1000", t.elapsed());
    let facts = Facts::read(&root);
    let mut set = Settings::new(CpuList::new(0..2), CpuList::default(), CpuList::default());
    let arg = |n: usize| std::env::args().nth(n).and_then(|a| a.parse::<u64>().ok());
    let secs = arg(1).unwrap_or(5);
    if let Some(ms) = arg(2) {
        set.poll = Duration::from_millis(ms);
    }
    if let Some(kb) = arg(3) {
        set.measured_kb = kb;
    }
    let t = Instant::now();
    let mut r = Recorder::start(&root, &facts, set).unwrap();
    println!("start {:?}", t.elapsed());
    let plan = |d| Plan {
        cpus: vec![1],
        policy: Policy::Fifo,
        priority: 80,
        period_ns: 200_000,
        duration_ns: d,
        staggered: false,
        budget_ns: None,
        spike_ns: Some(100_000),
        workload: workloads::WORKLOADS[0],
    };
    if std::env::args().any(|a| a == "cost") {
        let c = recorder::cost::cost(&r, &plan(1), 8, 100_000_000).unwrap();
        println!("cost {c:?}");
    }
    let before = r.stats();
    let mut s = Session::start(&plan(secs * 1_000_000_000)).unwrap();
    let tid = s.started()[0].tid as i32;
    let (mut asked, mut windows, mut events, mut lost, mut told, mut cut) = (0, 0, 0usize, 0, 0, 0);
    let mut maxlat = 0;
    let start = Instant::now();
    loop {
        let done = s.is_finished();
        s.collect(|_, _| {});
        s.spikes(|_, sp| {
            maxlat = maxlat.max(sp.latency_ns);
            if asked < 2000 {
                asked += 1;
                r.ask(rtproof_trace::WakeUp {
                    tid,
                    cpu: 1,
                    due_ns: sp.due_ns,
                    ran_ns: sp.due_ns + sp.latency_ns,
                    how: rtproof_trace::How::Measured,
                });
            }
        });
        for (w, win) in r.take() {
            windows += 1;
            events += win.events.len();
            cut += win.cut as u32;
            if win.lost_between(w.due_ns, w.ran_ns) {
                lost += 1;
            }
            if win.events.iter().any(|e| {
                matches!(&e.what, rtproof_trace::What::Switch{next_pid,..} if *next_pid == tid)
                    && e.at_ns >= w.due_ns
                    && e.at_ns <= w.ran_ns
            }) {
                told += 1;
            }
        }
        if done && start.elapsed().as_secs() > secs {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let e = start.elapsed();
    s.finish(|_, _| {}, |_, _| {});
    r.stop();
    for (w, win) in r.take() {
        windows += 1;
        events += win.events.len();
        if win.lost_between(w.due_ns, w.ran_ns) {
            lost += 1;
        }
    }
    let st = r.stats();
    println!(
        "{st:?}\nmaxlat {maxlat} asked {asked} windows {windows} events/window {} lost {lost} told {told} cut {cut}",
        events / windows.max(1)
    );
    println!(
        "events/s {:.0} recorder CPU {:.2} % over {e:?}; {:.1} ns/event",
        (st.events - before.events) as f64 / e.as_secs_f64(),
        (st.cpu_time_ns - before.cpu_time_ns) as f64 / e.as_nanos() as f64 * 100.,
        (st.cpu_time_ns - before.cpu_time_ns) as f64 / (st.events - before.events) as f64
    );
}
