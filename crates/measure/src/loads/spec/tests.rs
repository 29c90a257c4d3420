//! Cases of the specification: what is taken, what comes back, what is refused and with which
//! words.

use super::*;

fn set(text: &str) -> Result<Vec<String>, String> {
    let set = LoadSet::from_command_line(text).map_err(|error| error.to_string())?;
    let again: LoadSet = set.to_string().parse().map_err(|error: SpecError| error.to_string())?;
    assert_eq!(again, set, "{text:?} does not come back");
    Ok(set.as_slice().iter().map(ToString::to_string).collect())
}

fn error(text: &str) -> String {
    set(text).unwrap_err()
}

#[test]
fn names_are_split_and_commands_take_the_rest() {
    let taken = |text| set(text).unwrap();
    assert_eq!(taken("cpu"), ["cpu"]);
    assert_eq!(taken("cpu,memory"), ["cpu", "memory"]);
    assert_eq!(taken(" cpu + memory,net "), ["cpu", "memory", "net"]);
    assert_eq!(taken("none"), ["idle"]);
    assert_eq!(taken("cpu,cmd:make -j4, then+more"), ["cpu", "cmd:make -j4, then+more"]);
    assert_eq!(taken("stress-ng:--cpu 2,cpu"), ["stress-ng:--cpu 2,cpu"]);
    assert_eq!(taken("stress-ng:\"--cpu 2\""), ["stress-ng:--cpu 2"]);
    assert_eq!(taken("cmd:'sleep 1'"), ["cmd:sleep 1"]);
    assert_eq!(taken("cmd:'a' 'b'"), ["cmd:'a' 'b'"]);
    assert_eq!(taken("cmd: sh -c \"x, y\""), ["cmd:sh -c \"x, y\""]);
}

#[test]
fn quotes_are_taken_once() {
    let typed = LoadSet::from_command_line("cpu+cmd:\"''\"").unwrap();
    assert_eq!(typed.to_string(), "cpu+cmd:''");
    for literal in ["cmd:''", "cmd:\"a\"", "cmd: 'a b' ", "stress-ng:'--cpu' ", "cpu+cmd:\"'x'\""] {
        let set: LoadSet = literal.parse().unwrap();
        assert_eq!(set.to_string(), literal, "parsing what was printed changes nothing");
    }
}

#[test]
fn whatever_is_taken_comes_back() {
    const NASTY: [char; 9] = ['"', '\'', '\\', ' ', '\n', 'a', ',', '+', ':'];
    let mut bodies = vec![String::new()];
    let mut taken = 0;
    for _ in 0..5 {
        let longer = |body: &String| NASTY.map(|c| format!("{body}{c}"));
        bodies = bodies.iter().flat_map(longer).collect();
        for (prefix, body) in ["cmd:", "stress-ng:", "net,cmd:"]
            .iter()
            .flat_map(|prefix| bodies.iter().map(move |body| (prefix, body)))
        {
            let text = format!("{prefix}{body}");
            for set in [LoadSet::from_command_line(&text), text.parse()].into_iter().flatten() {
                assert_eq!(set.to_string().parse(), Ok(set.clone()), "{text:?}");
                for spec in set.as_slice() {
                    assert_eq!(spec.to_string().parse().as_ref(), Ok(spec), "{text:?}");
                }
                taken += 1;
            }
        }
    }
    assert!(taken > 100_000, "{taken}");
}

#[test]
fn every_load_is_taken_by_its_name() {
    for load in LOADS.iter().filter(|load| load.name != "traffic") {
        let spec: LoadSpec = load.name.parse().unwrap();
        assert_eq!(spec.name(), load.name);
        assert_eq!(spec.is_idle(), load.name == "idle");
        assert!(spec.built_in().is_some());
    }
    let spec: LoadSpec = "cmd:make -j4".parse().unwrap();
    assert_eq!((spec.name(), spec.built_in().is_none()), ("cmd", true));
}

#[test]
fn errors_name_the_close_one_and_all() {
    assert_eq!(
        error("cpu,memroy"),
        format!(
            "\"memroy\" is not a load (did you mean memory?); known are {}, stress-ng:\"ARGS\", \
             cmd:\"COMMAND\", and lists of them: s0, s1, s2, s3, s4",
            LOADS.iter().map(|load| load.name).collect::<Vec<_>>().join(", ")
        )
    );
    for (text, close) in [
        ("dsik", "disk"),
        ("network", "net"),
        ("CPU", "cpu"),
        ("mem", "memory"),
        ("stress-ng", "stress-ng:"),
    ] {
        let hint = format!("(did you mean {close}?)");
        assert!(error(text).contains(&hint), "{}", error(text));
    }
    assert!(!error("xyzzy").contains("mean"));
}

#[test]
fn a_colon_takes_what_the_load_takes() {
    let taken = |text| set(text).unwrap();
    assert_eq!(taken("ping:4+memory"), ["ping:4", "memory"]);
    assert_eq!(taken("traffic:eth1:192.0.2.7,cpu"), ["traffic:eth1:192.0.2.7", "cpu"]);
    assert_eq!(taken(" s4 , fork"), ["memory", "ping", "fork"]);
    assert_eq!(error("cpu:2"), "cpu:2: expected nothing after its name");
    assert_eq!(error("ping:0"), "ping:0: expected a number of floods from 1 to 64");
    assert!(error("ping:").contains("ping:: expected"), "{}", error("ping:"));
    assert!(error("traffic").starts_with("traffic: expected the interface"));
    assert!(error("idle:1").contains("expected nothing"));
    assert!(error("s5").contains("is not a load"));
    assert!(error("cpu+s0").contains("cpu is named twice"));
    assert!(error("idle+s3").contains("stands alone"));
}

#[test]
fn what_makes_no_sense_is_refused() {
    assert!(error("").contains("lacks the name"));
    assert!(error("cpu,,net").starts_with("\"cpu,,net\" lacks"));
    assert!(error("cpu,").starts_with("\"cpu,\" lacks"));
    assert!(error("idle+cpu").contains("stands alone"));
    assert!(error("cpu+net+cpu").contains("cpu is named twice"));
    assert!(error("cmd:").contains("e.g. cmd:make -j4"));
    assert!(error("stress-ng: \"\"").contains("e.g. stress-ng:"));
    assert!(error("stress-ng:--job 'a").contains("a ' quote is not closed"));
    assert!(error("cmd:a\0b").contains("zero byte"));
}
