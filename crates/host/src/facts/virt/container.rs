//! Which container we are in, from the marks that runtimes leave.

use crate::{Reading, Root};

/// Name of the runtime. `None` only where process 1 could be looked at.
pub(super) fn read(root: &Root) -> Reading<Option<String>> {
    let mark = |path: &str, name: &str| {
        root.exists(path).then(|| Reading::known(path, Some(name.to_owned())))
    };
    let manager = root.trimmed("/run/systemd/container");
    if let Some(name) = manager.value().filter(|name| !name.is_empty()) {
        return Reading::known(&manager.path, Some(name.clone()));
    }
    let marked = mark("/run/.containerenv", "podman").or_else(|| mark("/.dockerenv", "docker"));
    if let Some(marked) = marked.filter(|_| !root.in_initial_namespaces()) {
        return marked;
    }
    // For root only; where it is refused the control group still shows it.
    let environment = root.read_text("/proc/1/environ");
    if let Some(name) = environment.value().and_then(|text| from_environment(text)) {
        return Reading::known(environment.path, Some(name));
    }
    // Our own group shows it, too: a container may share the machine's process ids.
    let group = |path: &str| root.read_text(path).map(|text| from_cgroup(&text).map(str::to_owned));
    let (first, own) = (group("/proc/1/cgroup"), group("/proc/self/cgroup"));
    if own.value().is_some_and(Option::is_some) && first.value().is_none_or(Option::is_none) {
        return own;
    }
    first.or_else(|| environment.map(|_| None))
}

fn from_environment(text: &str) -> Option<String> {
    let name = text.split('\0').find_map(|variable| variable.strip_prefix("container="))?;
    (!name.is_empty()).then(|| name.to_owned())
}

fn from_cgroup(text: &str) -> Option<&'static str> {
    let marks = [
        ("kubepods", "kubernetes"),
        ("libpod", "podman"),
        ("docker", "docker"),
        ("lxc", "lxc"),
        ("containerd", "containerd"),
        ("machine.slice/systemd-nspawn", "systemd-nspawn"),
    ];
    // docker.service is the daemon's own group, on a host.
    let paths = || text.lines().filter(|line| !line.ends_with(".service"));
    marks
        .into_iter()
        .find_map(|(mark, name)| paths().any(|path| path.contains(mark)).then_some(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;

    #[test]
    fn marks_of_runtimes() {
        let name = |files: &[(&str, &str)]| read(&Tree::new(files).root()).value().cloned();
        let some = |name: &str| Some(Some(name.to_owned()));
        assert_eq!(name(&[("run/systemd/container", "lxc\n")]), some("lxc"));
        assert_eq!(name(&[("run/.containerenv", "")]), some("podman"));
        assert_eq!(name(&[(".dockerenv", "")]), some("docker"));
        assert_eq!(name(&[("proc/1/environ", "A=b\0container=oci\0")]), some("oci"));
        let pods = "0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-abc.scope\n";
        assert_eq!(name(&[("proc/1/cgroup", pods)]), some("kubernetes"));
        assert_eq!(name(&[("proc/1/cgroup", "9:name=systemd:/docker/abc\n")]), some("docker"));
        assert_eq!(name(&[("proc/1/cgroup", "0::/init.scope\n")]), Some(None));
        assert_eq!(name(&[("proc/1/environ", "HOME=/\0")]), Some(None));
        assert_eq!(name(&[]), None);
        let shared = ("proc/self/cgroup", "0::/docker/abc\n");
        assert_eq!(name(&[("proc/1/cgroup", "0::/init.scope\n"), shared]), some("docker"));
    }

    #[test]
    fn a_mark_left_in_an_image_is_no_container() {
        let tree = Tree::new(&[(".dockerenv", ""), ("proc/1/cgroup", "0::/\n")]);
        let ns = tree.path().join("proc/self/ns");
        std::fs::create_dir_all(&ns).unwrap();
        std::os::unix::fs::symlink("pid:[4026531836]", ns.join("pid")).unwrap();
        std::os::unix::fs::symlink("cgroup:[4026532000]", ns.join("cgroup")).unwrap();
        assert_eq!(read(&tree.root()).value(), Some(&Some("docker".to_owned())));
        std::fs::remove_file(ns.join("cgroup")).unwrap();
        std::os::unix::fs::symlink("cgroup:[4026531835]", ns.join("cgroup")).unwrap();
        assert_eq!(read(&tree.root()).value(), Some(&None));
    }
}
