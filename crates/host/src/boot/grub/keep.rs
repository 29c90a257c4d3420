//! Keeps the default of the menu when a kernel comes: update-grub sorts by version, and the first
//! one is the default. The lines stand before all others in custom.cfg: what others set there, and
//! an entry of ours that is confirmed, still decides.

use super::menu::{DEFAULT, Menu, others};
use crate::boot::loader::{BootError, Change, View, block, view};

impl Menu {
    /// The change that names the default entry by its kernel; `None` where no name of it lasts.
    pub(super) fn kept(&self, view: &View<'_>) -> Result<Option<Change>, BootError> {
        let Some(spec) = self.lasting()? else { return Ok(None) };
        let path = self.config.custom();
        let old = view.bytes(&path)?.unwrap_or_default();
        let lines = format!(
            "# Of rtproof tune: the default of before a kernel was installed; rtproof tune undo\n\
             # takes it away.\n{DEFAULT}  set default='{spec}'\nfi\n"
        );
        let mut text = lines.replace('\n', block::line_end(&old)).into_bytes();
        text.extend(old);
        let changes = [view::file(&path, text)];
        let then = others(&View::with(view.root(), &changes), &path)?;
        let [change] = changes;
        Ok((self.config.default_spec(&then) == spec).then_some(change))
    }

    /// A name of the default entry that a new kernel does not take: identities of its menus and
    /// of an entry with the same kernel and command line, which has the kernel's release.
    fn lasting(&self) -> Result<Option<String>, BootError> {
        let Some(at) = self.default.filter(|_| self.config.reads_custom()) else {
            return Ok(None);
        };
        let Some(default) = self.entry_at(at)? else { return Ok(None) };
        let file = default.kernel.rsplit('/').next().unwrap_or_default();
        let Some((_, release)) = file.split_once('-') else { return Ok(None) };
        let entries = &self.config.script.entries;
        for (at, entry) in entries.iter().enumerate().filter(|(_, entry)| !entry.is_submenu) {
            let has_release = entry.id.as_ref().is_some_and(|id| id.contains(release));
            let Some(found) = self.entry_at(at)?.filter(|_| has_release) else { continue };
            let is_same = (&found.kernel, &found.initrd, &found.cmdline)
                == (&default.kernel, &default.initrd, &default.cmdline);
            let ids: Option<Vec<&str>> = (1..=entry.place.len())
                .map(|depth| {
                    let menu = entries.iter().find(|it| it.place == entry.place[..depth])?;
                    menu.id.as_deref().filter(|id| !id.contains(['\'', '>']))
                })
                .collect();
            if let (true, Some(ids)) = (is_same, ids) {
                return Ok(Some(ids.join(">")));
            }
        }
        Ok(None)
    }
}
