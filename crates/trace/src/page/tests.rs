//! Pages of every layout, each trap of the format, and bytes from anywhere.

use proptest::{collection::vec, prelude::*};

use super::*;
use crate::testing::{KERNELS, Kernel};

type Records = Vec<(u64, Vec<u8>)>;

fn layout(kernel: &Kernel) -> PageLayout {
    let formats = crate::Formats::new(&kernel.header_page(4096), kernel.order);
    *formats.expect("a header").layout()
}

/// Times and data of a page's records.
fn read(kernel: &Kernel, page: &[u8]) -> Result<Records, PageError> {
    let page = RingPage::parse(&layout(kernel), page)?;
    page.records().map(|raw| raw.map(|raw| (raw.at_ns, raw.data.to_vec()))).collect()
}

/// Eight bytes of data whose first two are a number, in either order of bytes.
const A: [u8; 8] = [7, 7, 1, 2, 3, 4, 5, 6];

const B: [u8; 4] = [8, 8, 0, 1];

#[test]
fn records_have_their_times_in_every_layout() {
    for kernel in &KERNELS {
        let page = kernel.page(1000).event(1000, &A).event(1500, &B).done();
        let records = read(kernel, &page).expect("records");
        assert_eq!(records, [(1000, A.to_vec()), (1500, B.to_vec())]);
        let page = RingPage::parse(&layout(kernel), &page).expect("a page");
        let ids: Vec<u16> = page.records().flatten().map(|raw| raw.id).collect();
        assert_eq!(ids, [0x0707, 0x0808]);
        assert_eq!((page.at_ns(), page.missed(), page.is_empty()), (1000, None, false));
    }
}

#[test]
fn a_time_extend_adds_both_its_parts() {
    for kernel in &KERNELS {
        let at = 1000 + (5 << 27) + 12_345;
        let page = kernel.page(1000).event(at, &A).event(at + 1, &B).done();
        assert_eq!(read(kernel, &page), Ok(vec![(at, A.to_vec()), (at + 1, B.to_vec())]));
    }
}

#[test]
fn an_absolute_stamp_keeps_the_upper_bits() {
    let high = 0x1b << 59;
    for kernel in &KERNELS {
        let page = kernel.page(high | 50).absolute(high | 900).event(high | 910, &A).done();
        assert_eq!(read(kernel, &page), Ok(vec![(high | 910, A.to_vec())]));
        // The low bits came round.
        let before = high | ((1 << 59) - 10);
        let after = (0x1c << 59) | 5;
        let page = kernel.page(before).absolute(after).event(after + 1, &A).done();
        assert_eq!(read(kernel, &page), Ok(vec![(after + 1, A.to_vec())]));
        // A step back is one, not a whole round.
        let page = kernel.page(2000).absolute(1990).event(1995, &A).done();
        assert_eq!(read(kernel, &page), Ok(vec![(1995, A.to_vec())]));
    }
}

#[test]
fn discarded_events_are_skipped_and_their_time_counts() {
    for kernel in &KERNELS {
        let page = kernel.page(100).event(110, &A).discarded(40, 24).event(160, &B).done();
        assert_eq!(read(kernel, &page), Ok(vec![(110, A.to_vec()), (160, B.to_vec())]));
        // The kernel makes 1 of the time 0 of a discarded event.
        let page = kernel.page(100).discarded(0, 8).event(105, &B).done();
        assert_eq!(read(kernel, &page), Ok(vec![(105, B.to_vec())]));
    }
}

#[test]
fn padding_without_a_time_ends_the_page() {
    for kernel in &KERNELS {
        let page = kernel.page(100).event(110, &A).ended().done();
        assert_eq!(read(kernel, &page), Ok(vec![(110, A.to_vec())]));
    }
}

#[test]
fn long_and_aligned_records_have_their_length_in_the_second_word() {
    let long: Vec<u8> = (0..200).map(|byte| byte as u8).collect();
    for kernel in &KERNELS {
        let page = kernel.page(1).event(2, &long).event(3, &B).done();
        assert_eq!(read(kernel, &page), Ok(vec![(2, long.clone()), (3, B.to_vec())]));
        let page = kernel.page(1).long_event(2, &A).long_event(3, &A).done();
        assert_eq!(read(kernel, &page), Ok(vec![(2, A.to_vec()), (3, A.to_vec())]));
    }
}

#[test]
fn lost_events_are_counted_where_the_kernel_counts_them() {
    for kernel in &KERNELS {
        for count in [None, Some(77), Some(0x1_0002)] {
            let bytes = kernel.page(9).event(9, &A).missed(count).done();
            let page = RingPage::parse(&layout(kernel), &bytes).expect("a page");
            assert_eq!(page.missed(), Some(MissedEvents { count }));
            assert_eq!(read(kernel, &bytes).map(|records| records.len()), Ok(1));
            let stored = if count.is_some() { kernel.long_bytes } else { 0 };
            let used = 8 + kernel.long_bytes + 12 + stored;
            assert_eq!(page.used_bytes(&layout(kernel)), used);
            // Only what means something was kept.
            let page = RingPage::parse(&layout(kernel), &bytes[..used]).expect("a page");
            assert_eq!(page.missed(), Some(MissedEvents { count }));
        }
        // Said to be stored, but there is no room for it.
        let mut bytes = kernel.page(9).event(9, &A).missed(Some(1)).done();
        bytes.truncate(8 + kernel.long_bytes + 12);
        let page = RingPage::parse(&layout(kernel), &bytes).expect("a page");
        assert_eq!(page.missed(), Some(MissedEvents { count: None }));
        let lost_only = kernel.page(9).missed(None).done();
        let page = RingPage::parse(&layout(kernel), &lost_only).expect("a page");
        assert!(!page.is_empty() && page.records().next().is_none());
    }
}

#[test]
fn sub_buffers_may_be_larger_than_a_page_of_memory() {
    let kernel = &KERNELS[0];
    let formats = crate::Formats::new(&kernel.header_page(65536), kernel.order).expect("a header");
    let mut bytes = kernel.page(5).done();
    bytes.truncate(16);
    let records = 5000_usize;
    for _ in 0..records {
        bytes.extend((2_u32 | 1 << 5).to_le_bytes());
        bytes.extend(A);
    }
    let commit = (bytes.len() - 16) as u64;
    bytes[8..16].copy_from_slice(&commit.to_le_bytes());
    bytes.resize(65536, 0);
    let page = RingPage::parse(formats.layout(), &bytes).expect("a page");
    let last = page.records().flatten().last().expect("records");
    assert_eq!((page.records().count(), last.at_ns), (records, 5 + records as u64));
}

#[test]
fn what_cannot_be_is_an_error_with_its_place() {
    for kernel in &KERNELS {
        let header = 8 + kernel.long_bytes;
        let error = |bytes: &[u8]| read(kernel, bytes).expect_err("an error");
        assert_eq!(error(&[]), PageError::Short { bytes: 0, header });
        let bytes = kernel.page(1).event(1, &A).done();
        let short = header + 11;
        assert_eq!(error(&bytes[..short]), PageError::Commit { commit: 12, bytes: 11 });
        // A record that goes beyond the end, of each kind.
        for (kind, second) in [(3, 0), (0, 0x7fff_fffc), (29, 0x7fff_fffc), (29, u32::MAX)] {
            let page = with_words(kernel, kind, second);
            let found = error(&page);
            let is_record = matches!(found, PageError::Record { at, left: 8, .. } if at == header);
            assert!(is_record, "{kind} {second:#x}: {found:?}");
        }
        for (kind, second) in [(0, 0), (0, 3), (0, 4)] {
            let found = error(&with_words(kernel, kind, second));
            let is_length = matches!(found, PageError::Length { at, .. } if at == header);
            assert!(is_length, "{kind} {second:#x}: {found:?}");
        }
        // Not even a whole first word, or no second one.
        let found = error(&kernel.page(1).raw(&[0x41, 0]).done());
        assert_eq!(found, PageError::Record { at: header, bytes: 4, left: 2 });
        let one = with_words(kernel, 30, 0)[header..header + 4].to_vec();
        let found = error(&kernel.page(1).raw(&one).done());
        assert_eq!(found, PageError::Record { at: header, bytes: 8, left: 4 });
    }
}

/// A page of two words: a kind with time 1, and the second.
fn with_words(kernel: &Kernel, kind: u32, second: u32) -> Vec<u8> {
    let words = match kernel.order {
        ByteOrder::Little => [(kind | 1 << 5).to_le_bytes(), second.to_le_bytes()],
        ByteOrder::Big => [(kind << 27 | 1).to_be_bytes(), second.to_be_bytes()],
    };
    kernel.page(1).raw(&words.concat()).done()
}

#[test]
fn after_an_error_nothing_comes() {
    let kernel = &KERNELS[0];
    let bytes = kernel.page(1).event(2, &A).raw(&[0xff, 0]).done();
    let page = RingPage::parse(&layout(kernel), &bytes).expect("a page");
    let records: Vec<_> = page.records().collect();
    assert!(records.len() == 2 && records[0].is_ok() && records[1].is_err());
}

proptest! {
    #[test]
    fn what_was_written_is_read(
        kernel in 0..KERNELS.len(),
        start in 0_u64..1 << 58,
        events in vec((prop_oneof![0_u64..2000, 0_u64..1 << 40], vec(1_u8.., 2..160)), 0..20),
    ) {
        let kernel = &KERNELS[kernel];
        let mut page = kernel.page(start);
        let mut at_ns = start;
        let mut expected = Vec::new();
        for (delta, mut data) in events {
            at_ns += delta;
            page = page.event(at_ns, &data);
            data.resize(data.len().next_multiple_of(4), 0);
            expected.push((at_ns, data));
        }
        prop_assert_eq!(read(kernel, &page.done()), Ok(expected));
    }

    #[test]
    fn any_bytes_end_without_a_panic(
        kernel in 0..KERNELS.len(),
        commit in 0_usize..300,
        mut bytes in vec(any::<u8>(), 0..300),
    ) {
        let kernel = &KERNELS[kernel];
        // Most committed lengths are too large to get any further.
        if bytes.len() >= 16 {
            let is_little = kernel.order == ByteOrder::Little;
            let place = if is_little { 8 } else { 8 + kernel.long_bytes - 2 };
            bytes[8..8 + kernel.long_bytes].fill(0);
            let commit = commit as u16;
            let commit = match kernel.order {
                ByteOrder::Little => commit.to_le_bytes(),
                ByteOrder::Big => commit.to_be_bytes(),
            };
            bytes[place..place + 2].copy_from_slice(&commit);
        }
        if let Ok(page) = RingPage::parse(&layout(kernel), &bytes) {
            // Each record takes at least a word.
            prop_assert!(page.records().count() <= bytes.len() / 4 + 1);
            for raw in page.records().flatten() {
                prop_assert!(raw.data.len() >= 2);
            }
        }
    }
}
