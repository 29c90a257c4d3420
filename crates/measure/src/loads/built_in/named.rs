//! The loads that the sources of rtproof measured beside, as lists of those that are built in. S0
//! to S4 are the documents of docs/coverage.md.

/// Name, loads, and what the source says.
pub struct Named {
    /// On the command line.
    pub name: &'static str,
    /// What it stands for: the record holds that.
    pub loads: &'static str,
    /// What the source used, with its line, and what differs.
    pub about: &'static str,
}

pub const NAMED: &[Named] = &[
    Named {
        name: "s0",
        loads: "cpu+memory+net+disk",
        about: "S0:224 asks for a stress test of CPU, memory, storage and network; S0:287 traced \
                beside `stress-ng -c 4`, which is `cpu` alone",
    },
    Named {
        name: "s1",
        loads: "cpu+memory+disk",
        about: "S1:127 points to a page on stress-ng and names no stressors: these three are the \
                choice of rtproof",
    },
    Named {
        name: "s2",
        loads: "cpu+memory+disk+fork",
        about: "S2:10 used stress-ng beside the measured program, on CPUs 1 to 3 (S2:36, give \
                --load-cpus 1-3), and names no stressors: these four are the choice of rtproof",
    },
    Named {
        name: "s3",
        loads: "net",
        about: "S3:94 had two ssh sessions and a player of Internet radio, 7 to 8 % of a CPU; this \
                flood is far heavier",
    },
    Named {
        name: "s4",
        loads: "memory+ping",
        about: "S4:163 and S4:174: memory threads on each CPU, random reads and writes of large \
                blocks, and several ping floods",
    },
];

/// The loads that a name stands for.
pub(in super::super) fn loads_of(name: &str) -> Option<&'static str> {
    NAMED.iter().find(|named| named.name == name).map(|named| named.loads)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loads::LoadSet;

    #[test]
    fn a_name_is_its_loads() {
        for named in NAMED {
            let set = LoadSet::from_command_line(named.name).expect(named.name);
            assert_eq!(set.to_string(), named.loads);
            assert!(super::super::find(named.name).is_none() && loads_of(named.name).is_some());
        }
        let more = LoadSet::from_command_line("s4+disk").expect("with another");
        assert_eq!(more.to_string(), "memory+ping+disk");
        let twice = LoadSet::from_command_line("s4+memory").expect_err("memory is in s4");
        assert!(twice.to_string().contains("memory is named twice"), "{twice}");
    }
}
