//! A matrix of `measure` as one TOML file. Every complaint names the line.
//!
//! Keys outside of blocks hold for all blocks; each `[[block]]` may say any of them anew. Without a
//! block the keys outside are the one there is. `[[condition]]` are states of the machine in which
//! all blocks are measured, in their order.

use std::ops::Range;

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use rtproof_host::{door::Invalid, facts::tasks::Policy};
use rtproof_results::measure::{Common, Condition};

use super::{Block, WorkloadChoice, cells};
use crate::intent::{PERIOD_NS, PRIORITY};
use crate::parse;

const BYTES_MAX: usize = 1 << 20;

/// Values of one list, at most.
const VALUES_MAX: usize = 1000;

/// Keys of a block.
const OF_BLOCK: &str = "workload, cpus, each, policy, priority, period, load, for, samples, repeat";

/// Keys that hold for all.
const OF_ALL: &str =
    "budget, spike, trace, start, clock, keep-samples, dma-latency, load-cpus, load-dir";

/// A matrix as it is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Matrix {
    pub blocks: Vec<Block>,
    /// States of the machine, in order.
    pub conditions: Vec<Condition>,
    pub common: Common,
}

/// What is wrong, and where.
#[derive(Debug)]
struct Wrong {
    at: Range<usize>,
    what: String,
}

type Result<T> = std::result::Result<T, Wrong>;

type Value<'a> = Spanned<DeValue<'a>>;

impl Matrix {
    /// Reads a matrix; `path` names it in complaints.
    ///
    /// # Errors
    /// What is wrong, with file and line.
    pub fn parse(text: &str, path: &str) -> std::result::Result<Self, Invalid> {
        if text.len() > BYTES_MAX {
            return Err(format!("{path}: larger than 1 MiB; this is no matrix").into());
        }
        let at = |byte: usize| {
            let before = &text.as_bytes()[..byte.min(text.len())];
            before.iter().filter(|byte| **byte == b'\n').count() + 1
        };
        let table = DeTable::parse(text).map_err(|wrong| {
            let line = at(wrong.span().map_or(0, |span| span.start));
            format!("{path}:{line}: {}", wrong.message().replace('\n', ", "))
        })?;
        of_table(table.get_ref())
            .map_err(|w| format!("{path}:{}: {}", at(w.at.start), w.what).into())
    }
}

/// Block of a matrix that names none: `timer-wakeup`.
pub fn default_block() -> Block {
    Block {
        workloads: vec![WorkloadChoice::Everywhere("timer-wakeup".into())],
        cpus: None,
        each: false,
        policies: vec![Policy::Fifo],
        priorities: vec![PRIORITY],
        periods_ns: vec![PERIOD_NS],
        loads: vec!["idle".into()],
        duration_ns: None,
        samples: None,
        repeat: 1,
    }
}

fn of_table(table: &DeTable<'_>) -> Result<Matrix> {
    let mut base = default_block();
    let mut common = Common { trace: true, ..Common::default() };
    let (mut blocks, mut conditions) = (None, None);
    for (key, value) in table {
        match key.get_ref().as_ref() {
            "block" => blocks = Some(value),
            "condition" => conditions = Some(value),
            name if set(&mut base, name, value)? || set_common(&mut common, name, value)? => {}
            name => {
                let what = format!(
                    "no such key \"{name}\"; expected {OF_BLOCK}, {OF_ALL}, [[block]] or \
                     [[condition]]"
                );
                return Err(Wrong { at: key.span(), what });
            }
        }
    }
    let blocks = match blocks {
        None => vec![base],
        Some(value) => tables(value, "block")?
            .into_iter()
            .map(|table| block(&base, table))
            .collect::<Result<_>>()?,
    };
    let conditions = match conditions {
        None => Vec::new(),
        Some(value) => {
            let read: Vec<Condition> =
                tables(value, "condition")?.into_iter().map(condition).collect::<Result<_>>()?;
            cells::check_conditions(&read)
                .map_err(|what| Wrong { at: value.span(), what: what.0 })?;
            read
        }
    };
    Ok(Matrix { blocks, conditions, common })
}

fn block(base: &Block, table: &DeTable<'_>) -> Result<Block> {
    let mut own = base.clone();
    for (key, value) in table {
        if !set(&mut own, key.get_ref(), value)? {
            let what = format!("no such key \"{}\"; expected {OF_BLOCK}", key.get_ref());
            return Err(Wrong { at: key.span(), what });
        }
    }
    Ok(own)
}

fn condition(table: &DeTable<'_>) -> Result<Condition> {
    let mut condition = Condition { name: String::new(), before: None, after: None };
    for (key, value) in table {
        let text = || text(value).map(str::to_owned);
        match key.get_ref().as_ref() {
            "name" => condition.name = text()?,
            "before" => condition.before = Some(text()?),
            "after" => condition.after = Some(text()?),
            name => {
                let what = format!("no such key \"{name}\"; expected name, before, after");
                return Err(Wrong { at: key.span(), what });
            }
        }
    }
    Ok(condition)
}

/// Sets a key of a block; `false`: unknown key.
fn set(own: &mut Block, key: &str, value: &Value<'_>) -> Result<bool> {
    match key {
        "workload" => own.workloads = many(value, super::workloads)?.concat(),
        "cpus" => own.cpus = Some(text(value)?.to_owned()),
        "each" => own.each = boolean(value)?,
        "policy" => own.policies = many(value, super::policy)?,
        "priority" => own.priorities = many(value, parse::priority)?,
        "period" => own.periods_ns = many(value, parse::period)?,
        "load" => own.loads = many(value, super::load)?,
        "for" => own.duration_ns = Some(one(value, parse::run_duration)?),
        "samples" => own.samples = Some(one(value, parse::samples)?),
        "repeat" => own.repeat = one(value, super::repeat)?,
        _ => return Ok(false),
    }
    Ok(true)
}

/// Sets a key that holds for all; `false`: unknown key.
fn set_common(common: &mut Common, key: &str, value: &Value<'_>) -> Result<bool> {
    match key {
        "budget" => common.budget_ns = Some(one(value, parse::budget)?),
        "spike" => common.spike_ns = Some(one(value, parse::spike)?),
        "trace" => common.trace = boolean(value)?,
        "start" => {
            common.is_aligned = one(value, |text| match text {
                "aligned" => Ok(true),
                "staggered" => Ok(false),
                _ => Err(format!("\"{text}\"; expected staggered or aligned").into()),
            })?;
        }
        "clock" => common.clock = one(value, parse::clock)?,
        "keep-samples" => common.keep_samples = boolean(value)?,
        "dma-latency" => {
            common.dma_latency_us = Some(one(value, |text| {
                text.parse().map_err(|_| format!("\"{text}\" is no number of microseconds").into())
            })?);
        }
        "load-cpus" => common.load_cpus = Some(text(value)?.to_owned()),
        "load-dir" => common.load_dir = Some(text(value)?.into()),
        _ => return Ok(false),
    }
    Ok(true)
}

fn wrong<T>(value: &Value<'_>, what: impl Into<String>) -> Result<T> {
    Err(Wrong { at: value.span(), what: what.into() })
}

fn text<'a>(value: &'a Value<'_>) -> Result<&'a str> {
    match value.get_ref() {
        DeValue::String(text) => Ok(text),
        _ => wrong(value, "expected a text in quotes"),
    }
}

fn boolean(value: &Value<'_>) -> Result<bool> {
    match value.get_ref() {
        DeValue::Boolean(value) => Ok(*value),
        _ => wrong(value, "expected true or false"),
    }
}

/// One value, written as a text or a number.
fn one<T>(
    value: &Value<'_>,
    read: impl FnOnce(&str) -> std::result::Result<T, Invalid>,
) -> Result<T> {
    let text = match value.get_ref() {
        DeValue::String(text) => text.as_ref(),
        DeValue::Integer(number) if number.radix() == 10 => number.as_str(),
        _ => return wrong(value, "expected a text in quotes, or a number"),
    };
    read(text).or_else(|what| wrong(value, what))
}

/// One value or a list of them.
fn many<T>(
    value: &Value<'_>,
    read: impl Fn(&str) -> std::result::Result<T, Invalid>,
) -> Result<Vec<T>> {
    match value.get_ref() {
        DeValue::Array(values) if values.is_empty() => wrong(value, "an empty list: no cell"),
        DeValue::Array(values) if values.len() > VALUES_MAX => {
            wrong(value, format!("more than {VALUES_MAX} values"))
        }
        DeValue::Array(values) => values.iter().map(|value| one(value, &read)).collect(),
        _ => one(value, read).map(|one| vec![one]),
    }
}

/// The tables of `[[name]]`.
fn tables<'a, 'b>(value: &'a Value<'b>, name: &str) -> Result<Vec<&'a DeTable<'b>>> {
    let expected = || format!("expected [[{name}]]");
    let DeValue::Array(values) = value.get_ref() else { return wrong(value, expected()) };
    if values.len() > VALUES_MAX {
        return wrong(value, format!("more than {VALUES_MAX} of [[{name}]]"));
    }
    let table = |value: &'a Value<'b>| match value.get_ref() {
        DeValue::Table(table) => Ok(table),
        _ => wrong(value, expected()),
    };
    values.iter().map(table).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_inherit_outer_keys() {
        let text = "for = \"2s\"\ncpus = \"1-3\"\nperiod = [\"1ms\", \"500us\"]\ntrace = false\n\
                    [[block]]\neach = true\n[[block]]\npriority = [20, 80]\nfor = \"5s\"\n\
                    [[condition]]\nname = \"tuned\"\nbefore = \"true\"\nafter = \"true\"\n";
        let matrix = Matrix::parse(text, "m.toml").unwrap();
        let [first, second] = &matrix.blocks[..] else { panic!("{matrix:?}") };
        assert_eq!((first.duration_ns, first.each), (Some(2_000_000_000), true));
        assert_eq!((second.duration_ns, second.each), (Some(5_000_000_000), false));
        assert_eq!(first.periods_ns, [1_000_000, 500_000]);
        assert_eq!((&first.priorities[..], &second.priorities[..]), (&[80][..], &[20, 80][..]));
        assert!(!matrix.common.trace);
        assert_eq!(matrix.conditions[0].before.as_deref(), Some("true"));
        assert_eq!(Matrix::parse("", "m").unwrap().blocks, [default_block()]);
    }

    #[test]
    fn every_complaint_names_the_line() {
        for (line, part, text) in [
            (2, "no such key \"worklod\"", "for = \"2s\"\nworklod = \"memory\"\n"),
            (
                3,
                "no such key \"budget\"; expected workload",
                "[[block]]\n# one\nbudget = \"1ms\"\n",
            ),
            (3, "no such key \"befor\"", "[[condition]]\nname = \"a\"\nbefor = \"x\"\n"),
            (1, "`nothing` is no workload", "workload = [\"timer-wakeup\", \"nothing\"]\n"),
            (2, "is no policy; expected other", "\npolicy = \"FIFO\"\n"),
            (1, "1 to 99", "priority = [20, 100]\n"),
            (1, "a period must be from", "period = \"1ns\"\n"),
            (1, "no unit", "period = 1000\n"),
            (1, "expected a text in quotes", "period = 1.5\n"),
            (1, "expected true or false", "each = \"yes\"\n"),
            (1, "an empty list", "load = []\n"),
            (1, "1 to 10000", "repeat = -1\n"),
            (2, "staggered or aligned", "\nstart = \"both\"\n"),
            (1, "expected [[block]]", "[block]\neach = true\n"),
            (1, "there twice", "[[condition]]\nname = \"a\"\n[[condition]]\nname = \"a\"\n"),
            (1, "`after` without `before`", "[[condition]]\nname = \"a\"\nafter = \"x\"\n"),
            (2, "duplicate key", "for = \"1s\"\nfor = \"2s\"\n"),
            (3, "", "for = \"1s\"\n\n= 4\n"),
        ] {
            let error = Matrix::parse(text, "m.toml").unwrap_err();
            assert!(error.starts_with(&format!("m.toml:{line}: ")), "{text}\n{error}");
            assert!(error.contains(part), "{text}\n{error}");
            assert!(!error.contains('\n'), "{error}");
        }
        let large = "#".repeat(BYTES_MAX + 1);
        assert!(Matrix::parse(&large, "m").unwrap_err().contains("larger than 1 MiB"));
    }
}
