//! The links that enable, mask and alias a unit: what `systemctl enable` and `mask` leave behind,
//! read and planned as data, so that they are put back one by one.

use crate::{Root, change::UnitState, facts::units::FOLDERS as FILES, tune::error::ChangeError};

/// Links as (path, text), by path.
pub(super) type Links = [(String, String)];
/// Links, and the folders of links.
type Found = (Vec<(String, String)>, Vec<String>);

/// Where an administrator's links are.
const OURS: &[&str] = &["/etc/systemd/system", "/run/systemd/system"];
/// Folders of links that pull a unit in.
const PULLS: &[&str] = &[".wants", ".requires", ".upholds"];
/// Run levels that become multi-user.target (systemd-sysv-generator).
const LEVELS: std::ops::RangeInclusive<u32> = 2..=5;

/// The links of a unit, and the folders of links that there are.
///
/// # Errors
/// One cannot be looked at: it may be the unit's, and undo would take it away.
pub(super) fn all(root: &Root, unit: &str) -> Result<Found, ChangeError> {
    let (mut links, mut folders) = (Vec::new(), Vec::new());
    for top in OURS {
        for name in names(root, top)? {
            let path = format!("{top}/{name}");
            if PULLS.iter().any(|pull| name.ends_with(pull)) {
                for entry in names(root, &path)? {
                    links.extend(link(root, &format!("{path}/{entry}"), &entry, unit)?);
                }
                folders.push(path);
            } else {
                links.extend(link(root, &path, &name, unit)?);
            }
        }
    }
    for level in (0..=6).map(|level| level.to_string()).chain(["S".into()]) {
        let folder = format!("/etc/rc{level}.d");
        for entry in names(root, &folder)? {
            if Some(script_of(&entry)) == unit.strip_suffix(".service").map(Some) {
                let path = format!("{folder}/{entry}");
                let to = ChangeError::there(root.read_link(&path))?;
                links.extend(to.map(|to| (path, to)));
            }
        }
    }
    Ok((links, folders))
}

fn names(root: &Root, folder: &str) -> Result<Vec<String>, ChangeError> {
    Ok(ChangeError::there(root.list_dir(folder))?.unwrap_or_default())
}

/// The link at a path when it is the unit's: by its own name, or by where it leads.
fn link(
    root: &Root,
    path: &str,
    name: &str,
    unit: &str,
) -> Result<Option<(String, String)>, ChangeError> {
    let Some(to) = ChangeError::there(root.read_link(path))? else { return Ok(None) };
    let is_ours = name == unit || to.rsplit('/').next() == Some(unit);
    Ok(is_ours.then(|| (path.to_owned(), to)))
}

/// `irqbalance` of `S01irqbalance`.
fn script_of(entry: &str) -> Option<&str> {
    let rest = entry.strip_prefix(['S', 'K'])?;
    let (number, name) = (rest.get(..2)?, rest.get(2..)?);
    number.bytes().all(|byte| byte.is_ascii_digit()).then_some(name)
}

fn is_pull(path: &str) -> bool {
    let folder = path.rsplit('/').nth(1).unwrap_or_default();
    PULLS.iter().any(|pull| folder.ends_with(pull))
}

fn is_boot_script(path: &str) -> bool {
    path.starts_with("/etc/rc")
}

fn is_mask(to: &str) -> bool {
    to == "/dev/null"
}

/// The file of a unit; of its template for an instance.
fn file(root: &Root, unit: &str) -> Option<String> {
    let template = unit.split_once('@').and_then(|(name, instance)| {
        let (_, kind) = instance.rsplit_once('.')?;
        Some(format!("{name}@.{kind}"))
    });
    let names = || std::iter::once(unit.to_owned()).chain(template.clone());
    let at = |name: &str, folder: &&str| {
        let path = format!("{folder}/{name}");
        let is_masked = root.read_link(&path).value().is_some_and(|to| is_mask(to));
        (!is_masked && root.read_text(&path).value().is_some()).then_some(path)
    };
    names().find_map(|name| FILES.iter().find_map(|folder| at(&name, folder)))
}

/// The links that there are to be.
///
/// # Errors
/// When links alone cannot do it; with what can.
pub(super) fn planned(
    root: &Root,
    unit: &str,
    want: UnitState,
    now: &Links,
) -> Result<Vec<(String, String)>, ChangeError> {
    let unexpected = |found: &str, expected: &str| ChangeError::Unexpected {
        path: unit.into(),
        found: found.into(),
        expected: expected.into(),
    };
    let mask = (format!("{}/{unit}", OURS[0]), "/dev/null".to_owned());
    let is_masked = now.iter().any(|(_, to)| is_mask(to));
    match want {
        UnitState::Stopped | UnitState::Started => Ok(now.to_vec()),
        UnitState::Masked => {
            if now.iter().any(|(path, to)| *path == mask.0 && !is_mask(to))
                || root.read_link(&mask.0).value().is_none() && root.exists(&mask.0)
            {
                return Err(unexpected(
                    "a file of its own in /etc",
                    "a unit that can be masked; disable it",
                ));
            }
            let mut links = now.to_vec();
            if !is_masked {
                links.push(mask);
            }
            Ok(links)
        }
        UnitState::Disabled => {
            let own_file = file(root, unit);
            if !is_masked && pulled_in_by_vendor(root, unit)? {
                return Err(unexpected(
                    "pulled in by a folder of the distribution",
                    "a unit that links in /etc enable; mask it",
                ));
            }
            Ok(disabled(now, unit, own_file.is_some()))
        }
        UnitState::Enabled => {
            let mut links: Vec<_> = now.iter().filter(|(_, to)| !is_mask(to)).cloned().collect();
            match file(root, unit) {
                Some(path) => add_enabling(root, unit, &path, &mut links),
                None if links.iter().any(|(path, _)| is_boot_script(path)) => {
                    start_script(&mut links);
                }
                None => return Err(unexpected("no unit file", "a unit that is installed")),
            }
            Ok(links)
        }
    }
}

/// Without what pulls the unit in. A boot script counts only where no unit file replaces it.
fn disabled(now: &Links, unit: &str, has_file: bool) -> Vec<(String, String)> {
    let mut links = Vec::new();
    for (path, to) in now {
        let name = path.rsplit('/').next().unwrap_or_default();
        if is_boot_script(path) {
            links.push(match (has_file, path.rsplit_once("/S")) {
                (false, Some((folder, rest))) => {
                    (format!("{folder}/K01{}", rest.get(2..).unwrap_or_default()), to.clone())
                }
                _ => (path.clone(), to.clone()),
            });
        } else if !is_pull(path) && (name == unit || is_mask(to)) {
            links.push((path.clone(), to.clone()));
        }
    }
    links
}

fn start_script(links: &mut [(String, String)]) {
    let is_level =
        |path: &str| LEVELS.clone().any(|level| path.starts_with(&format!("/etc/rc{level}.d/")));
    for (path, _) in links.iter_mut().filter(|(path, _)| is_level(path)) {
        if let Some((folder, rest)) = path.rsplit_once("/K") {
            *path = format!("{folder}/S01{}", rest.get(2..).unwrap_or_default());
        }
    }
}

fn pulled_in_by_vendor(root: &Root, unit: &str) -> Result<bool, ChangeError> {
    for top in FILES.iter().filter(|folder| !OURS.contains(folder)) {
        for name in names(root, top)? {
            let is_pull = PULLS.iter().any(|pull| name.ends_with(pull));
            if is_pull && names(root, &format!("{top}/{name}"))?.iter().any(|name| name == unit) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// Adds the links that the unit's [Install] section asks for (systemd.unit(5)). Units that it names
/// with `Also=` are other units: they are enabled by a change of their own.
fn add_enabling(root: &Root, unit: &str, file: &str, links: &mut Vec<(String, String)>) {
    let text = root.read_text(file);
    let Some(text) = text.value() else { return };
    let mut add = |path: String| {
        if !links.iter().any(|(there, _)| *there == path) {
            links.push((path, file.to_owned()));
        }
    };
    for (key, value) in install(text) {
        for word in value.split_whitespace() {
            let word = word.replace("%i", instance(unit)).replace("%n", unit);
            if word.contains(['/', '%']) {
                continue;
            }
            match key {
                "WantedBy" => add(format!("{}/{word}.wants/{unit}", OURS[0])),
                "RequiredBy" => add(format!("{}/{word}.requires/{unit}", OURS[0])),
                "UpheldBy" => add(format!("{}/{word}.upholds/{unit}", OURS[0])),
                "Alias" => add(format!("{}/{word}", OURS[0])),
                _ => {}
            }
        }
    }
}

fn instance(unit: &str) -> &str {
    let instance = unit.split_once('@').map(|(_, instance)| instance);
    instance.and_then(|instance| instance.rsplit_once('.')).map_or("", |(instance, _)| instance)
}

/// Keys of the [Install] section.
fn install(text: &str) -> Vec<(&str, &str)> {
    let mut section = "";
    let mut keys = Vec::new();
    for line in text.lines().map(str::trim) {
        if line.starts_with('[') {
            section = line;
        } else if section == "[Install]" && !line.starts_with(['#', ';']) {
            keys.extend(line.split_once('=').map(|(key, value)| (key.trim(), value.trim())));
        }
    }
    keys
}

/// Whether links are on the way from some to others: each is in one of the two, and none that is in
/// both is away.
pub(super) fn is_between(from: &Links, to: &Links, now: &Links) -> bool {
    now.iter().all(|link| from.contains(link) || to.contains(link))
        && from.iter().filter(|link| to.contains(link)).all(|link| now.contains(link))
}
