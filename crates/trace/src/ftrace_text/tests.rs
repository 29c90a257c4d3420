//! Lines of every kind; the real traces are in tests/traces.rs.

use proptest::prelude::*;

use super::*;
use crate::{EventClass, WakeUpBasis, event};

fn calls(trace: &TextTrace) -> Vec<&Event> {
    trace.events.iter().filter(|event| matches!(event.what, EventData::Call { .. })).collect()
}

fn one(line: &str) -> Event {
    let trace = parse(line).unwrap_or_else(|error| panic!("{line}: {error}"));
    assert_eq!((trace.events.len(), trace.skipped.count), (1, 0), "{line}: {trace:?}");
    trace.events[0].clone()
}

#[test]
fn names_may_hold_what_separates() {
    let event = one(
        " a - [001] b=c-12345   [003] dN.21  8.000001: sched_switch: prev_comm=a ==> b prev_p prev_pid=12345 \
         prev_prio=-1 prev_state=R+ ==> next_comm=x =y> next_pid=7 next_prio=99",
    );
    assert_eq!((event.cpu, event.pid, event.at_ns), (3, 12_345, 8_000_001_000));
    assert_eq!(
        (event.flags, event.preempt),
        (event::flags::IRQS_OFF | event::flags::NEED_RESCHED, 0x12)
    );
    let EventData::Switch { prev_comm, prev_prio, prev_state, next_comm, next_pid, .. } =
        event.what
    else {
        panic!("{event:?}")
    };
    assert_eq!((prev_comm, next_comm), ("a ==> b prev_p".into(), "x =y>".into()));
    assert_eq!((prev_prio, prev_state, next_pid), (-1, 0, 7));
}

#[test]
fn flags_are_read_by_the_legend_or_by_their_number() {
    let body = "  9.5: softirq_raise: vec=9 [action=RCU]";
    for (letters, bits, preempt) in [
        ("dNh3", event::flags::IRQS_OFF | event::flags::NEED_RESCHED | event::flags::HARDIRQ, 0x03),
        (
            "bls21",
            event::flags::BH_OFF | event::flags::NEED_RESCHED_LAZY | event::flags::SOFTIRQ,
            0x12,
        ),
        (
            ".NLH2.",
            event::flags::NEED_RESCHED
                | event::flags::NEED_RESCHED_LAZY
                | event::flags::HARDIRQ
                | event::flags::SOFTIRQ,
            2,
        ),
        ("D..Z.24", event::flags::IRQS_OFF | event::flags::BH_OFF | event::flags::NMI, 0x40),
    ] {
        let event = one(&format!("x-1 [000] {letters}{body}"));
        assert_eq!((event.flags, event.preempt), (bits, preempt), "{letters}");
    }
    // Without flags, with the process, as a count.
    for line in ["x-1 [000]", "x-1     (     55) [000] .....", "x-1 (-------) [000] d..1"] {
        assert_eq!(one(&format!("{line}{body}")).at_ns, 9_500_000_000);
    }
    assert_eq!(one("x-1 [000] ..... 123456: cpu_idle: state=4294967295 cpu_id=0").at_ns, 123_456);
    let legend =
        "# tracer: nop\n#  _---=> irqs-off\n# / _--=> preempt-depth\n# | / _-=> a-new-one\n";
    let trace = parse(&format!("{legend} x-1 [000] d7N 1.0: cpu_idle: state=1 cpu_id=0"));
    let trace = trace.expect("a trace");
    assert_eq!((trace.events[0].flags, trace.events[0].preempt), (event::flags::IRQS_OFF, 7));
    assert_eq!(trace.tracer, "nop");
}

#[test]
fn every_kind_of_line_has_its_event() {
    let name = |what: &EventData| serde_json::to_string(what).expect("json");
    for (body, wanted) in [
        (
            "sched_waking: comm=a b pid=7 prio=19 target_cpu=003",
            r#"{"waking":{"comm":"a b","pid":7,"prio":19,"target_cpu":3}}"#,
        ),
        (
            "sched_wakeup: comm=a pid=7 prio=19 success=1 target_cpu=003",
            r#"{"wakeup":{"comm":"a","pid":7,"prio":19,"target_cpu":3}}"#,
        ),
        (
            "sched_migrate_task: comm=a pid=7 prio=19 orig_cpu=0 dest_cpu=1",
            r#"{"migrate":{"comm":"a","pid":7,"prio":19,"from_cpu":0,"to_cpu":1}}"#,
        ),
        (
            "sched_pi_setprio: comm=a pid=7 oldprio=120 newprio=19",
            r#"{"pi_setprio":{"comm":"a","pid":7,"old_prio":120,"new_prio":19}}"#,
        ),
        (
            "hrtimer_start: hrtimer=0000000073d9c642 function=tick expires=24 softexpires=2 mode=ABS",
            r#"{"timer_start":{"timer":1943651906,"function":17293822569102704640,"expires_ns":24,"soft_ns":2}}"#,
        ),
        ("hrtimer_cancel: hrtimer=00000000d64cf595", r#"{"timer_cancel":{"timer":3595367829}}"#),
        (
            "hrtimer_expire_entry: hrtimer=10 function=tick now=2400424011358",
            r#"{"timer_expire":{"timer":16,"function":17293822569102704640,"now_ns":2400424011358}}"#,
        ),
        (
            "timer_expire_entry: timer=10 function=p now=4295492342 baseclk=4",
            r#"{"wheel_expire":{"timer":16,"function":17293822569102704640}}"#,
        ),
        ("timer_expire_exit: timer=10", r#"{"wheel_expired":{"timer":16}}"#),
        ("reschedule_entry: vector=253", r#"{"vector_entry":{"vector":"reschedule"}}"#),
        (
            "call_function_single_exit: vector=251",
            r#"{"vector_exit":{"vector":"call_function_single"}}"#,
        ),
        (
            "irq_handler_entry: irq=36 name=virtio1 req.0",
            r#"{"irq_entry":{"irq":36,"name":"virtio1 req.0"}}"#,
        ),
        ("irq_handler_exit: irq=36 ret=handled", r#"{"irq_exit":{"irq":36}}"#),
        (
            "ipi_entry: (Function call interrupts)",
            r#"{"ipi_entry":{"reason":"Function call interrupts"}}"#,
        ),
        (
            "ipi_raise: target_mask=00000001,00000002 (Rescheduling interrupts)",
            r#"{"ipi_raise":{"cpus":4294967298,"reason":"Rescheduling interrupts"}}"#,
        ),
        (
            "ipi_send_cpumask: cpumask=0-1,5 callsite=a+0x1/0x2 callback=b+0x0/0x10",
            r#"{"ipi_raise":{"cpus":35,"reason":""}}"#,
        ),
        (
            "ipi_send_cpu: cpu=0 callsite=a+0x20/0x60 callback=b+0x0/0x10",
            r#"{"ipi_send":{"to_cpu":0,"callsite":17293822569102704640,"callback":17293822569102704656}}"#,
        ),
        (
            "nmi_handler: perf_event_nmi_handler() delta_ns: 2713 handled: 1",
            r#"{"nmi":{"handler":17293822569102704640,"delta_ns":2713}}"#,
        ),
        ("cpu_idle: state=2 cpu_id=3", r#"{"idle":{"state":2}}"#),
        ("cpu_frequency: state=2400000 cpu_id=3", r#"{"frequency":{"of_cpu":3,"khz":2400000}}"#),
        (
            "workqueue_execute_start: work struct 00000000d98d5ecb: function a",
            r#"{"work_start":{"work":3649920715,"function":17293822569102704640}}"#,
        ),
        (
            "workqueue_execute_end: work struct 00000000d98d5ecb: function a",
            r#"{"work_end":{"work":3649920715}}"#,
        ),
        (
            "page_fault_user: address=0x559c92f5cebc ip=0x10 error_code=0x7",
            r#"{"page_fault":{"user":true,"address":94130968841916,"ip":16}}"#,
        ),
        (
            "irq_disable: caller=a+0x1/0x2 parent=0x0",
            r#"{"irqs":{"off":true,"caller":17293822569102704640}}"#,
        ),
        (
            "preempt_enable: caller=a+0x1/0x2 parent=0x0",
            r#"{"preempt":{"off":false,"caller":17293822569102704640}}"#,
        ),
        (
            "signal_generate: sig=17 errno=0 code=1 comm=a b pid=9 grp=1 res=0",
            r#"{"signal":{"number":17,"comm":"a b","pid":9}}"#,
        ),
        (
            "cpuhp_enter: cpu: 0001 target: 195 step: 194 (smpboot)",
            r#"{"hotplug":{"of_cpu":1,"target":195,"function":17293822569102704640}}"#,
        ),
        (
            "#12     context irq timer_latency  4970000 ns",
            r#"{"timerlat":{"sequence":12,"context":0,"latency_ns":4970000}}"#,
        ),
        (
            "#12     context user-ret timer_latency  4970000 ns",
            r#"{"timerlat":{"sequence":12,"context":2,"latency_ns":4970000}}"#,
        ),
        (
            "#3 inner/outer(us): 21/20    ts:1702024432.844243126 count:9 nmi-total:4 nmi-count:2",
            r#"{"hwlat":{"inner_ns":21000,"outer_ns":20000,"nmi_count":2}}"#,
        ),
        (
            "nmi_noise: start 11.000000004 duration 5061 ns",
            r#"{"noise":{"kind":"nmi","name":"","number":-1,"start_ns":11000000004,"duration_ns":5061}}"#,
        ),
        (
            "softirq_noise:  NET_RX:3 start 11.400000000 duration 5061 ns",
            r#"{"noise":{"kind":"softirq","name":"NET_RX","number":3,"start_ns":11400000000,"duration_ns":5061}}"#,
        ),
        (
            "thread_noise: a start b:7 start 11.400000000 duration 51 ns",
            r#"{"noise":{"kind":"thread","name":"a start b","number":7,"start_ns":11400000000,"duration_ns":51}}"#,
        ),
    ] {
        assert_eq!(name(&one(&format!("x-1 [000] d...1 1.000001: {body}")).what), wanted, "{body}");
    }
}

#[test]
fn what_is_not_understood_is_counted_and_quoted() {
    let text = "x-1 [000] ..... 1.0: sched_switch: prev_comm=a\n\
        x-1 [000] ..... 1.5: sched_stat_runtime: comm=a pid=1 runtime=1 [ns]\nwhat is this\n\
        x-1 [000] ..... 1.5: hrtimer_cancel: hrtimer=zz\nCPU:0 [LOST 17 EVENTS]\n\
        x-1 [000] ..... 2.0: __schedule <-schedule\nx-1 [000] ..... 2.5: tick <-x+0x1/0x2\n";
    let trace = parse(text).expect("a trace");
    assert_eq!(trace.skipped.count, 3);
    assert!(trace.skipped.first[1].contains("what is this"));
    assert_eq!(trace.others["sched_stat_runtime"], 1);
    let lost = Lost { from_ns: 1_500_000_000, to_ns: 2_000_000_000, count: Some(17) };
    assert_eq!(trace.lost, [(0, lost)]);
    let calls = calls(&trace);
    let EventData::Call { caller, .. } = calls[0].what else { panic!() };
    assert_eq!((calls.len(), trace.symbols[&caller].as_str()), (2, "schedule"));
    let error = parse("PID USER\n 1 root\n").expect_err("no trace");
    assert!(error.to_string().contains("none of 2 lines"), "{error}");
}

#[test]
fn an_irqsoff_trace_has_its_section() {
    let text = "# tracer: irqsoff\n#\n# irqsoff latency trace v1.1.5 on 3.8.0-test+\n\
        # --------------------------------------------------------------------\n\
        # latency: 16 us, #4/4, CPU#2 | (M:preempt VP:0, KP:0, SP:0 HP:0 #P:4)\n\
        #    -----------------\n#    | task: swapper/0-0 (uid:0 nice:0 policy:0 rt_prio:0)\n\
        #    -----------------\n#  => started at: run_timer_softirq\n\
        #  => ended at:   run_timer_softirq\n#\n#\n\
        #                  _------=> CPU#            \n\
        #                 / _-----=> irqs-off        \n\
        #                | / _----=> need-resched    \n\
        #                || / _---=> hardirq/softirq \n\
        #                ||| / _--=> preempt-depth   \n\
        #                |||| /     delay             \n\
        #  cmd     pid   ||||| time  |   caller      \n\
        #     \\   /      |||||  \\    |   /           \n\
        \x20 <idle>-0       2d.s2    0us+: _raw_spin_lock_irq <-run_timer_softirq\n\
        \x20 <idle>-0       2dNs3   17us : _raw_spin_unlock_irq <-run_timer_softirq\n\
        \x20 <idle>-0       2dNs3   17us+: trace_hardirqs_on <-run_timer_softirq\n\
        \x20 <idle>-0       2dNs3   25us : <stack trace>\n => _raw_spin_unlock_irq\n\
        \x20=> run_timer_softirq\n => 0\n => after\n";
    let trace = parse(text).expect("a trace");
    assert_eq!(
        (trace.tracer.as_str(), trace.latency_ns, trace.cpu),
        ("irqsoff", Some(16_000), Some(2))
    );
    let section = trace.section.as_ref().expect("a section");
    assert_eq!(
        (section.began.as_str(), section.ended.as_str()),
        ("run_timer_softirq", "run_timer_softirq")
    );
    let calls = calls(&trace);
    assert_eq!((calls.len(), calls[0].cpu, calls[2].at_ns), (3, 2, 17_000));
    let EventData::Stack { frames } = &trace.events[3].what else { panic!("{trace:?}") };
    let names: Vec<_> = frames.iter().map(|frame| trace.symbols[frame].as_str()).collect();
    assert_eq!(names, ["_raw_spin_unlock_irq", "run_timer_softirq"]);
    let bits = event::flags::IRQS_OFF | event::flags::NEED_RESCHED | event::flags::SOFTIRQ;
    assert_eq!((trace.events[3].flags, trace.events[3].preempt), (bits, 3));
    let subject = WakeUp { tid: 0, cpu: 2, due_ns: 0, ran_ns: 16_000, how: WakeUpBasis::Section };
    assert_eq!((trace.skipped.count, trace.subject), (0, Some(subject)), "{:?}", trace.skipped);
    assert_eq!(trace.entries, Some((4, 4)));
}

/// The same two events in the words of each tool.
#[test]
fn every_form_of_a_line_is_the_same_event() {
    let plain = "         multipathd-1456    [001] d...3..    58.000001: sched_switch: \
        prev_comm=a prev_pid=1456 prev_prio=0 prev_state=S ==> next_comm=cyclictest next_pid=7 \
        next_prio=19";
    let wanted = one(plain).what;
    for line in [
        // trace-cmd report, of a buffer of its own, with -R, -t, --ts-diff and -l.
        "main:  multipathd-1456  [001] 58.000001: sched_switch: a:1456 [0] S ==> cyclictest:7 [19]",
        "multipathd-1456 [001] d..3. 58.000001: sched_switch: a:1456 [0] S ==> cyclictest:7 [19]",
        "multipathd-1456 [001] 58.000001: sched_switch:  prev_comm=a prev_pid=1456 prev_prio=0 \
         prev_state=1 next_comm=cyclictest next_pid=7 next_prio=19",
        "multipathd-1456 [001] 58.000001000: sched_switch: a:1456 [0] S ==> cyclictest:7 [19]",
        "multipathd-1456 [001] 58.000001: (+13)    sched_switch: a:1456 [0] S ==> cyclictest:7 [19]",
        "multipat-1456    1d..3. 58.000001: sched_switch: a:1456 [0] S ==> cyclictest:7 [19]",
        // perf script, with the process and with the period.
        "  multi path d 1456 [001]    58.000001:  sched:sched_switch: prev_comm=a prev_pid=1456 \
         prev_prio=0 prev_state=S ==> next_comm=cyclictest next_pid=7 next_prio=19",
        "multipathd  1/1456 [001]    58.000001:   1 sched:sched_switch: prev_comm=a prev_pid=1456 \
         prev_prio=0 prev_state=S ==> next_comm=cyclictest next_pid=7 next_prio=19",
        // Out of a mail.
        "> > multipathd-1456 [001] d...3..  58.000001: sched_switch: prev_comm=a prev_pid=1456 \
         prev_prio=0 prev_state=S ==> next_comm=cyclictest next_pid=7 next_prio=19",
    ] {
        let event = one(line);
        assert_eq!((event.at_ns, event.cpu, event.pid), (58_000_001_000, 1, 1456), "{line}");
        assert_eq!(event.what, wanted, "{line}");
    }
    let waking = one("x-1 [000] 1.0: sched_wakeup: a:b:7 [19] success=1 CPU:003").what;
    let comm = "a:b".into();
    assert_eq!(waking, EventData::Wakeup { comm, pid: 7, prio: 19, target_cpu: 3 });
}

#[test]
fn calls_of_every_tracer_are_calls() {
    let function = |line: &str| {
        let trace = parse(line).unwrap_or_else(|error| panic!("{line}: {error}"));
        let [event] = &trace.events[..] else { panic!("{line}: {trace:?}") };
        let EventData::Call { function, .. } = event.what else { panic!("{line}: {event:?}") };
        (trace.symbols[&function].clone(), event.cpu, event.pid, event.at_ns)
    };
    for line in [
        "cat-7 [001] d..2. 58.000001: schedule <-do_nanosleep",
        "cat-7 [001] 58.000001: function: schedule <-- do_nanosleep",
        "cat-7 [001] 58.000001: funcgraph_entry:   0.123 us   |  schedule();",
        "   58.000001 |   1)    cat-7    |  d..2. |   0.123 us    |    schedule();",
        "   58.000001 |   1)    cat-7    |  d..2. | ! 123.1 us    |    schedule() {",
    ] {
        assert_eq!(function(line), ("schedule".to_owned(), 1, 7, 58_000_001_000), "{line}");
    }
    let verbose = "  cyclictest    7 1 1 00000001 00000002 [00000003] 58.001ms (+0.001ms): \
        schedule <-do_nanosleep";
    assert_eq!(function(verbose), ("schedule".to_owned(), 1, 7, 58_001_000));
    // Its flags are decimal: 13 is interrupts off, a switch needed, in an interrupt.
    let verbose = verbose.replace(" 1 1 00000001 ", " 1 13 00000002 ");
    let event = parse(&verbose).expect("a line").events.remove(0);
    let expected = event::flags::IRQS_OFF | event::flags::NEED_RESCHED | event::flags::HARDIRQ;
    assert_eq!((event.flags, event.preempt), (expected, 2));
}

#[test]
fn what_is_missing_from_a_text_is_known() {
    let head = "# tracer: wakeup_rt\n# latency: 400 us, #9/9, CPU#1 | (M:preempt_rt)\n\
        # | task: cyclictest-7 (uid:0 nice:0 policy:1 rt_prio:80)\n";
    let wake = "a-8    1dN.h4..    1us :    8:120:R   + [001]   7: 19:R cyclictest\n";
    let end = "b-9    1d...3..  389us :    9:  0:S ==> [001]   7: 19:R cyclictest\n";
    let cut = parse(&format!("{head}{wake}")).expect("a trace");
    // It never ran in the text: its header says how late it was.
    let wanted = WakeUp { tid: 7, cpu: 1, due_ns: 1_000, ran_ns: 401_000, how: WakeUpBasis::Woken };
    assert_eq!((cut.subject, cut.entries), (Some(wanted), Some((9, 1))));
    let omitted = format!("{head}{wake}[omitted for brevity]\n{end}");
    let omitted = parse(&omitted).expect("a trace");
    let lost = Lost { from_ns: 1_000, to_ns: 389_000, count: None };
    assert_eq!(omitted.lost, [(1, lost)]);
    assert_eq!(omitted.subject.map(|subject| subject.ran_ns), Some(389_000));
    assert!(EventClass::ALL.into_iter().all(|class| !omitted.coverage.has(class)));
}

#[test]
fn what_is_no_trace_has_its_next_step() {
    for (text, next) in [
        (" 0) ! 7800.123 us |  }\n", "funcgraph-abstime"),
        // perf 6.1: sched timehist with its warning, its summary, latency, map.
        (
            "Samples do not have callchains.\n           time    cpu  task name                 \
             wait time  sch delay   run time\n",
            "perf script -i perf.data",
        ),
        (
            "\nRuntime summary\n    comm  parent   sched-in     run-time    min-run\n",
            "perf script -i perf.data",
        ),
        (
            "\n ------\n  Task                  |   Runtime ms  | Switches | Avg delay ms    | Max\n",
            "perf script -i perf.data",
        ),
        ("  *A0       29401.593487 secs A0 => migration/0:18\n", "perf script -i perf.data"),
        ("PID USER\n", "trace-cmd report"),
    ] {
        let error = parse(text).expect_err("no trace").to_string();
        assert!(error.contains(next), "{error}");
    }
    // A header alone is a trace, and what it says is not lost.
    let head = "# tracer: wakeup_rt\n# latency: 55000 us, #9/9, CPU#0 | (M:preempt_rt)\n\
        # | task: app-7 (uid:0 nice:0 policy:1 rt_prio:80)\n";
    let subject = parse(head).expect("a trace").subject.expect("a wake-up");
    assert_eq!((subject.tid, subject.latency_ns()), (7, 55_000_000));
}

#[test]
fn of_several_traces_each_is_read() {
    let one = |tracer: &str, pid: i32| {
        format!("# tracer: {tracer}\n x-{pid} [000] 1.0: cpu_idle: state=1 cpu_id=0\n")
    };
    let text = one("nop", 7) + &one("timerlat", 8);
    let mut pids = Vec::new();
    let traces = read(&mut text.as_bytes(), &mut |trace, entry| {
        if let TextEntry::Event(event, _) = entry {
            pids.push((trace, event.pid));
        }
    });
    let names: Vec<String> = traces.expect("two").into_iter().map(|trace| trace.tracer).collect();
    assert_eq!((names, pids), (vec!["nop".into(), "timerlat".into()], vec![(0, 7), (1, 8)]));
}

proptest! {
    #[test]
    fn any_text_is_no_panic(text in "(?s).{0,300}", tail in "[-0-9a-z \\[\\]:.=>#()\n]{0,300}") {
        let _ = parse(&text);
        let _ = parse_rtla(&text);
        if let Ok(trace) = parse(&format!("x-1 [000] d.h3. 2.0: {tail}")) {
            let _ = trace.window();
        }
    }
}

#[test]
fn no_wake_up_spans_lost_events_or_lines_that_were_left_out() {
    let line = |at_us: u64, body: &str| format!("  <idle>-0  [001] d..2. 1.{at_us:06}: {body}\n");
    let woken = line(100, "sched_waking: comm=a pid=7 prio=19 target_cpu=001");
    let runs = line(
        900,
        "sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=a \
         next_pid=7 next_prio=19",
    );
    let subjects = Subjects { all_real_time: true, ..Subjects::default() };
    let late = |between: &str| {
        let mut finder = Finder::new(&subjects, 100_000);
        let text = format!("# tracer: nop\n{woken}{between}{runs}");
        let traces = read(&mut text.as_bytes(), &mut |_, entry| finder.take(entry));
        let trace = &traces.expect("a trace")[0];
        finder.finish(trace.subject, trace.count, trace.end_ns).1
    };
    assert_eq!(late(""), 1);
    // On another CPU it may have run, and slept, meanwhile.
    let of_perf = " perf 9 [001]     1.000300: PERF_RECORD_LOST lost 3\n";
    for lost in ["CPU:1 [LOST 3 EVENTS]\n", "CPU:1 [3 EVENTS DROPPED]\n", "[...]\n", of_perf] {
        assert_eq!(late(lost), 0, "{lost}");
    }
    let of_report = "Processed 9 events and lost 1 chunks!\n";
    let trace = parse(&format!("{of_report}{woken}{runs}")).expect("a trace");
    assert!(trace.is_lossy && trace.lost.is_empty());
    let elsewhere = line(500, "cpu_idle: state=1 cpu_id=0").replace("[001]", "[000]");
    assert_eq!(late(&elsewhere), 1);
    // Lines that were sorted by CPU, or turned round: no wake-up spans the two times.
    let before = elsewhere.replace("1.000500", "1.000050");
    let trace = parse(&format!("{woken}{before}{runs}")).expect("a trace");
    assert_eq!((trace.reversals, trace.coverage.has(EventClass::Switches)), (1, false));
    assert_eq!(late(&before), 0);
    assert_eq!(late(&format!("CPU:0 [LOST 3 EVENTS]\n{elsewhere}")), 0);
}

/// Each waits for as long as all the others take: windows of everything, and nothing quadratic.
#[test]
fn windows_that_overlap_are_looked_at_longest_first_as_far_as_it_goes() {
    let mut lines: Vec<(u64, String)> = Vec::new();
    for i in 0..4000_u64 {
        let (woken, runs, tid) = (100_000_000 + 100 * i, 102_000_000 + 101 * i, 1000 + i);
        let at = |us: u64| format!("{}.{:06}", us / 1_000_000, us % 1_000_000);
        lines.push((
            woken,
            format!(
                "  <idle>-0  [001] d.h4. {}: sched_waking: comm=a pid={tid} prio=19 \
                 target_cpu=001\n",
                at(woken)
            ),
        ));
        lines.push((
            runs,
            format!(
                "  <idle>-0  [001] d..2. {}: sched_switch: prev_comm=swapper/1 prev_pid=0 \
                 prev_prio=120 prev_state=R ==> next_comm=a next_pid={tid} next_prio=19\n",
                at(runs)
            ),
        ));
    }
    lines.sort();
    let mut text = String::from("# tracer: nop\n#\n");
    text.extend(lines.into_iter().map(|(_, line)| line));
    let subjects = Subjects { all_real_time: true, ..Subjects::default() };
    let mut finder = Finder::new(&subjects, 100_000);
    let traces = read(&mut text.as_bytes(), &mut |_, entry| finder.take(entry));
    let trace = &traces.expect("a trace")[0];
    let (late, count) = finder.finish(trace.subject, trace.count, trace.end_ns);
    assert_eq!(count, 4000);
    assert!((100..1500).contains(&late.len()), "{}", late.len());
    assert!(late.is_sorted_by(|a, b| a.latency_ns() >= b.latency_ns()));
    assert_eq!(late[0].latency_ns(), 2_000_000_000 + 3999 * 1000);
}
