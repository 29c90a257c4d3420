//! Finding tracefs, instances, events: on made-up trees.

use super::*;
use crate::testing::Tree;

#[test]
fn a_captured_machine_is_refused() {
    let tree = Tree::new(&[("sys/kernel/tracing/instances/x", "")]);
    assert!(matches!(find_mount(&tree.root()), Err(TracefsError::NotLive)));
}

#[test]
fn obstacles_are_reported_with_the_next_step() {
    const FOLDER: &str = "/sys/kernel/tracing";
    let error = |files: &[(&str, &str)]| usable(&Tree::new(files).root(), FOLDER).unwrap_err();
    assert!(matches!(error(&[]), TracefsError::NoKernel));
    let old = error(&[("sys/kernel/tracing/tracing_on", "")]);
    assert!(old.to_string().contains("Linux 3.10"), "{old}");
    let tree = Tree::new(&[("sys/kernel/tracing/x", "")]);
    std::fs::remove_file(tree.path().join("sys/kernel/tracing/x")).unwrap();
    let empty = usable(&tree.root(), FOLDER).unwrap_err();
    assert!(empty.to_string().contains("`mount -t tracefs tracefs /sys/kernel/tracing`"));
    tree.write("sys/kernel/tracing/instances/x", "");
    assert!(usable(&tree.root(), FOLDER).is_ok());
}
