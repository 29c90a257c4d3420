//! apk (Alpine).

use rtproof_results::kernel::find::KernelPackage;

use super::manager::{FindError, Manager, Queries, is_realtime};

pub(super) const MANAGER: Manager =
    Manager { id: "apk", program: "apk", ask, install: "apk add", remove: "apk del" };

fn ask(queries: &mut Queries) -> Result<Vec<KernelPackage>, FindError> {
    let found = queries.ask(&["apk", "search", "-v", "linux-rt*"], None)?;
    let installed = queries.ask(&["apk", "info", "-v"], None)?;
    Ok(packages(&found, &installed))
}

/// Lines of `NAME-VERSION-rN - description`; sizes are not in them.
fn packages(found: &str, installed: &str) -> Vec<KernelPackage> {
    let split = |word: &str| {
        let (front, release) = word.rsplit_once('-')?;
        let (name, version) = front.rsplit_once('-')?;
        Some((name.to_owned(), format!("{version}-{release}")))
    };
    let installed: Vec<_> = installed.lines().filter_map(split).collect();
    let all = found.lines().filter_map(|line| {
        let (word, description) = line.split_once(" - ").unwrap_or((line, ""));
        let (name, version) = split(word.trim())?;
        let same = installed.iter().find(|(is, _)| *is == name);
        is_realtime(&name).then(|| KernelPackage {
            installed: same.map(|(_, version)| version.clone()),
            description: description.into(),
            name,
            version,
            ..KernelPackage::default()
        })
    });
    all.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_ends_before_its_version() {
        let all =
            packages("linux-rt-6.6.1-r0 - RT kernel\nlinux-rt-dev-6.6.1-r0 - x\n", "a-1-r0\n");
        assert_eq!(all.len(), 1);
        assert_eq!((all[0].name.as_str(), all[0].version.as_str()), ("linux-rt", "6.6.1-r0"));
        assert_eq!((all[0].disk_bytes, all[0].installed.as_ref()), (None, None));
    }
}
