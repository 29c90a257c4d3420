//! The tables of what changes did to latency: since version 3.

use super::table::{Table, c};

pub(super) const TRIAL: Table = Table {
    name: "trial",
    since: 3,
    about: "How changes of the machine were tried (tune apply --prove, experiment): at most one \
            row.",
    columns: &[
        c("id", "INTEGER PRIMARY KEY CHECK (id = 1)", "Always 1."),
        c("seed", "INTEGER NOT NULL", "Seed of the order of slices."),
        c(
            "design",
            "TEXT NOT NULL CHECK (design IN ('single', 'mirrored', 'screened', 'boots'))",
            "single: one knob after the other; mirrored: all at once, in each pair some on in one \
             slice and the others in the other; screened: all at once first, then pairs of what \
             stood out; boots: pairs of boots.",
        ),
        c("pairs", "INTEGER NOT NULL", "Pairs of slices planned for each knob."),
        c("slice_ns", "INTEGER NOT NULL", "Length of a slice."),
        c("margin_ppm", "INTEGER NOT NULL", "Differences up to this do not matter, 1/1000000."),
        c("level_ppb", "INTEGER NOT NULL", "P values below this count, 1/1000000000."),
        c(
            "detectable_ppm",
            "INTEGER",
            "Smallest change of p99.9 that was to be seen, 1/1000000. NULL: none.",
        ),
    ],
    constraints: "",
    without_rowid: false,
};

pub(super) const KNOB: Table = Table {
    name: "knob",
    since: 3,
    about: "Changes that belong together, and what was found.",
    columns: &[
        c("number", "INTEGER PRIMARY KEY", "0, 1, ..."),
        c("name", "TEXT NOT NULL", "Its checks."),
        c("changes", "TEXT NOT NULL", "What it changes, JSON array of strings."),
        c(
            "how",
            "TEXT NOT NULL CHECK (how IN ('toggled', 'once', 'not_tried'))",
            "toggled: on and off in pairs; once: before and after, drift is not excluded.",
        ),
        c(
            "decision",
            "TEXT NOT NULL CHECK (decision IN ('helps', 'hurts', 'no_difference', \
             'cannot_decide', 'not_tried'))",
            "What was found.",
        ),
        c("kept", "INTEGER NOT NULL CHECK (kept IN (0, 1))", "1: left in force."),
        c("why", "TEXT NOT NULL", "Why, and the next step."),
    ],
    constraints: "",
    without_rowid: false,
};

pub(super) const EFFECT: Table = Table {
    name: "effect",
    since: 3,
    about: "What a knob does to a statistic of a slice. Ratios: with the knob to without it.",
    columns: &[
        c("knob", "INTEGER NOT NULL REFERENCES knob (number)", "Knob."),
        c(
            "statistic",
            "TEXT NOT NULL CHECK (statistic IN ('p999', 'max'))",
            "p999: p99.9 of all wake-ups due, missed ones among them; max: the latest.",
        ),
        c("pairs", "INTEGER NOT NULL", "Pairs compared; 0 of before and after."),
        c("off_ns", "INTEGER NOT NULL", "Median of the slices without it."),
        c("on_ns", "INTEGER NOT NULL", "Median of the slices with it."),
        c("ratio_ppm", "INTEGER NOT NULL", "Hodges-Lehmann estimate of the ratio, 1/1000000."),
        c("low_ppm", "INTEGER", "Lower end of its 95 % interval, 1/1000000. NULL: none."),
        c("high_ppm", "INTEGER", "Upper end, 1/1000000. NULL: none."),
        c("p_ppb", "INTEGER", "P value, exact sign-flip test, 1/1000000000. NULL: not tested."),
        c("adjusted_ppb", "INTEGER", "The same after Holm. NULL: not tested."),
    ],
    constraints: ", PRIMARY KEY (knob, statistic)",
    without_rowid: true,
};

pub(super) const SLICE: Table = Table {
    name: "slice",
    since: 3,
    about: "Slices of time with and without knobs, all measured CPUs together.",
    columns: &[
        c("number", "INTEGER PRIMARY KEY", "0, 1, ..."),
        c(
            "part",
            "TEXT NOT NULL CHECK (part IN ('before', 'pair', 'screen', 'together', 'once', \
             'after'))",
            "before: nothing changed; pair: one of a pair with and without a knob; screen: one of \
             a pair with all knobs, each on in one of them; together: one of a pair with all that \
             seems to help, and nothing; once: with a change that is made once; after: with what \
             was kept.",
        ),
        c("pair", "INTEGER NOT NULL", "Pair: 0, 1, ..."),
        c("knobs_on", "TEXT NOT NULL", "Numbers of the knobs that were on, JSON array."),
        c("from_ns", "INTEGER NOT NULL", "Start, after the origin."),
        c("to_ns", "INTEGER NOT NULL", "End, after the origin."),
        c("n", "INTEGER NOT NULL", "Wake-ups that were due."),
        c("p999_ns", "INTEGER", "p99.9 of those. NULL: too few."),
        c("max_ns", "INTEGER", "Latest wake-up. NULL: there was none."),
        c("missed", "INTEGER NOT NULL", "Wake-ups due while the thread was still late."),
    ],
    constraints: "",
    without_rowid: false,
};
