//! Histogram of one second as bytes: ascending (bucket, count) pairs, delta and LEB128.
//!
//! A second of one thread touches some twenty to fifty buckets; two or three bytes each keep a
//! 64-CPU machine near 10 kB a second (docs/adr/0003-per-second-histograms-as-blobs.md).

use std::cmp::Ordering;

use crate::error::Contradiction;
use rtproof_stats::Layout;

/// Bytes of ascending pairs.
pub(crate) fn encode(pairs: &[(u16, u64)]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(pairs.len() * 3);
    let mut previous = 0;
    for &(bucket, n) in pairs {
        push(&mut bytes, u64::from(bucket - previous));
        push(&mut bytes, n);
        previous = bucket;
    }
    bytes
}

fn push(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// Pairs of bytes; buckets ascend and lie in `layout`, counts are positive.
pub(crate) fn decode(mut bytes: &[u8], layout: Layout) -> Result<Vec<(u16, u64)>, Contradiction> {
    let mut pairs = Vec::with_capacity(bytes.len() / 2);
    let mut previous: u64 = 0;
    while !bytes.is_empty() {
        let delta = pull(&mut bytes)?;
        let n = pull(&mut bytes)?;
        let bucket = previous.saturating_add(delta);
        if bucket >= layout.len() as u64 {
            return Err(format!("bucket {bucket} of {}", layout.len()).into());
        }
        if n == 0 || (delta == 0 && !pairs.is_empty()) {
            return Err(format!("bucket {bucket} is empty or comes twice").into());
        }
        pairs.push((bucket as u16, n)); // a grid has fewer than 2^16 buckets
        previous = bucket;
    }
    Ok(pairs)
}

fn pull(bytes: &mut &[u8]) -> Result<u64, Contradiction> {
    let mut value = 0;
    for shift in (0..63).step_by(7) {
        let (&byte, rest) = bytes.split_first().ok_or("a number is cut off")?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err("a number is longer than 63 bits".into())
}

/// Whether buckets ascend, lie in `layout` and hold something: what [`encode`] relies on.
pub(crate) fn check(pairs: &[(u16, u64)], layout: Layout) -> Result<(), Contradiction> {
    let ascending = pairs.windows(2).all(|pair| pair[0].0 < pair[1].0);
    let inside = pairs.last().is_none_or(|&(bucket, _)| usize::from(bucket) < layout.len());
    let positive = pairs.iter().all(|&(_, n)| n > 0 && n <= i64::MAX as u64);
    if ascending && inside && positive {
        return Ok(());
    }
    Err("its buckets do not ascend within the grid or are empty".into())
}

/// Sum of the counts; saturates.
pub(crate) fn total(pairs: &[(u16, u64)]) -> u64 {
    pairs.iter().fold(0, |sum, &(_, n)| sum.saturating_add(n))
}

/// Adds pairs to others; both ascend.
pub(crate) fn merge(into: &mut Vec<(u16, u64)>, more: &[(u16, u64)]) {
    let mut sum = Vec::with_capacity(into.len().max(more.len()));
    let (mut a, mut b) = (&into[..], more);
    while let (Some((&x, a_rest)), Some((&y, b_rest))) = (a.split_first(), b.split_first()) {
        match x.0.cmp(&y.0) {
            Ordering::Equal => {
                sum.push((x.0, x.1.saturating_add(y.1)));
                (a, b) = (a_rest, b_rest);
            }
            Ordering::Less => {
                sum.push(x);
                a = a_rest;
            }
            Ordering::Greater => {
                sum.push(y);
                b = b_rest;
            }
        }
    }
    sum.extend_from_slice(a);
    sum.extend_from_slice(b);
    *into = sum;
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn round_trip(map in proptest::collection::btree_map(
            0..Layout::COARSE.len() as u16, 1..i64::MAX as u64, 0..80))
        {
            let pairs: Vec<(u16, u64)> = map.into_iter().collect();
            check(&pairs, Layout::COARSE).unwrap();
            prop_assert_eq!(decode(&encode(&pairs), Layout::COARSE).unwrap(), pairs);
        }

        #[test]
        fn sums_are_those_of_a_map(
            a in proptest::collection::btree_map(0_u16..40, 1..9_u64, 0..20),
            b in proptest::collection::btree_map(0_u16..40, 1..9_u64, 0..20))
        {
            let mut sum: Vec<_> = a.clone().into_iter().collect();
            merge(&mut sum, &b.clone().into_iter().collect::<Vec<_>>());
            let mut map = a;
            b.into_iter().for_each(|(bucket, n)| *map.entry(bucket).or_insert(0) += n);
            prop_assert_eq!(sum, map.into_iter().collect::<Vec<_>>());
        }

        #[test]
        fn any_bytes_are_taken_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            if let Ok(pairs) = decode(&bytes, Layout::COARSE) {
                check(&pairs, Layout::COARSE).unwrap();
            }
        }
    }

    #[test]
    fn refuses_what_encode_never_writes() {
        for bytes in [&[1][..], &[1, 0], &[0x80], &[1, 1, 0, 1], &[0xff; 12], &[0xff, 0x7f, 1]] {
            decode(bytes, Layout::COARSE).unwrap_err();
        }
    }
}
