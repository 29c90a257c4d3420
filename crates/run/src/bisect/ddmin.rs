//! Delta debugging: a smallest set of differences that still fails, of which none can be left out.
//! Zeller, Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", IEEE TSE 28(2), 2002.

use rtproof_results::kernel::bisect::StepOutcome;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Minimal {
    /// Indices of the differences.
    pub(super) set: Vec<usize>,
    /// Those of them that may not be needed: the set without them could not be tested.
    pub(super) open: Vec<usize>,
}

/// Reduces `0..all`, which is bad, while nothing of it is good. `test` is asked the same more than
/// once, and has to answer the same.
pub(super) fn ddmin<E>(
    all: usize,
    test: &mut dyn FnMut(&[usize]) -> Result<StepOutcome, E>,
) -> Result<Minimal, E> {
    let mut set: Vec<usize> = (0..all).collect();
    let mut parts = 2;
    while set.len() > 1 {
        let chunks = split(&set, parts);
        let complements = chunks.iter().map(|chunk| without(&set, chunk));
        let mut smaller = None;
        // With two parts each is the other's complement.
        let asked = chunks.iter().cloned().map(|it| (it, true));
        let asked = asked.chain(complements.map(|it| (it, false)).filter(|_| parts > 2));
        for (candidate, is_chunk) in asked {
            if test(&candidate)? == StepOutcome::Bad {
                smaller = Some((candidate, is_chunk));
                break;
            }
        }
        match smaller {
            Some((chunk, true)) => (set, parts) = (chunk, 2),
            Some((complement, false)) => (set, parts) = (complement, (parts - 1).max(2)),
            None if parts >= set.len() => break,
            None => parts = (parts * 2).min(set.len()),
        }
        parts = parts.min(set.len().max(2));
    }
    let mut open = Vec::new();
    for &one in set.iter().filter(|_| set.len() > 1) {
        if test(&without(&set, &[one]))? == StepOutcome::Skipped {
            open.push(one);
        }
    }
    Ok(Minimal { set, open })
}

/// In `parts` pieces of nearly the same size, in order; none is empty.
fn split(set: &[usize], parts: usize) -> Vec<Vec<usize>> {
    let cut = |at: usize| at * set.len() / parts;
    let pieces = (0..parts).map(|at| set[cut(at)..cut(at + 1)].to_vec());
    pieces.filter(|piece| !piece.is_empty()).collect()
}

fn without(set: &[usize], gone: &[usize]) -> Vec<usize> {
    set.iter().copied().filter(|it| !gone.contains(it)).collect()
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, convert::Infallible};

    use super::*;

    /// Bad where all guilty ones are in; skipped where one of `breaks` is in without its partner.
    fn reduce(all: usize, guilty: &[usize], breaks: &[(usize, usize)]) -> (Minimal, usize) {
        let asked = Cell::new(0);
        let mut test = |set: &[usize]| -> Result<StepOutcome, Infallible> {
            asked.set(asked.get() + 1);
            let has = |it: &usize| set.contains(it);
            Ok(match () {
                () if breaks.iter().any(|(a, b)| has(a) && !has(b)) => StepOutcome::Skipped,
                () if guilty.iter().all(has) => StepOutcome::Bad,
                () => StepOutcome::Good,
            })
        };
        let Ok(minimal) = ddmin(all, &mut test);
        (minimal, asked.get())
    }

    #[test]
    fn every_single_one_and_every_pair_is_found() {
        for all in [1, 2, 3, 7, 24] {
            for a in 0..all {
                let (minimal, asked) = reduce(all, &[a], &[]);
                assert_eq!(minimal, Minimal { set: vec![a], open: vec![] });
                assert!(asked <= 12, "{asked} tests for 1 of {all}");
                for b in a + 1..all {
                    let (minimal, asked) = reduce(all, &[a, b], &[]);
                    assert_eq!(minimal, Minimal { set: vec![a, b], open: vec![] }, "of {all}");
                    assert!(asked <= all * all + 3 * all, "{asked} tests for 2 of {all}");
                }
            }
        }
    }

    #[test]
    fn what_cannot_be_tested_is_kept_and_named() {
        // 5 does not build without 9: 9 is not known to be needed.
        let (minimal, _) = reduce(24, &[5], &[(5, 9)]);
        assert_eq!(minimal, Minimal { set: vec![5, 9], open: vec![9] });
        let (minimal, _) = reduce(24, &[5, 17], &[(3, 4)]);
        assert_eq!(minimal, Minimal { set: vec![5, 17], open: vec![] });
    }

    #[test]
    fn an_error_ends_it() {
        let mut calls = 0;
        let ended = ddmin(8, &mut |_| {
            calls += 1;
            Err::<StepOutcome, _>("full")
        });
        assert_eq!((ended, calls), (Err("full"), 1));
    }
}
