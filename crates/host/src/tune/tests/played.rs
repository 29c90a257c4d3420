//! Tasks and units that are played.

use super::*;

/// Tasks by thread id.
#[derive(Debug, Default)]
pub(super) struct PlayedTasks(pub(super) RefCell<BTreeMap<u32, Scheduling>>);

impl Tasks for PlayedTasks {
    fn scheduling(&self, tid: u32) -> io::Result<Scheduling> {
        self.0.borrow().get(&tid).cloned().ok_or_else(|| Errno::SRCH.into())
    }

    fn set(&self, tid: u32, to: &Scheduling) -> io::Result<()> {
        let mut tasks = self.0.borrow_mut();
        let task = tasks.get_mut(&tid).ok_or(Errno::SRCH)?;
        if let Some(policy) = &to.policy {
            task.policy = Some(policy.clone());
            task.priority = None;
            task.nice = None;
        }
        task.priority = to.priority.or(task.priority);
        task.nice = to.nice.or(task.nice);
        task.reset_on_fork = to.reset_on_fork.or(task.reset_on_fork);
        if let Some(cpus) = &to.cpus {
            task.cpus = Some(cpus.clone());
        }
        Ok(())
    }
}

/// A line of /proc/TID/stat.
pub(super) fn stat(tid: u32, comm: &str, start: u64, flags: u64) -> String {
    let mut fields = vec!["0".to_owned(); 50];
    fields[0] = "S".into();
    fields[6] = flags.to_string();
    fields[17] = "1".into();
    fields[19] = start.to_string();
    format!("{tid} ({comm}) {}\n", fields.join(" "))
}

/// An ordinary task on CPUs.
pub(super) fn ordinary(cpus: &str) -> Scheduling {
    Scheduling {
        policy: Some("other".into()),
        nice: Some(0),
        reset_on_fork: Some(false),
        cpus: CpuList::parse(cpus, None).ok(),
        ..Scheduling::default()
    }
}

/// Units that run or do not, properties with drop-ins in a tree, and the calls.
#[derive(Debug)]
pub(super) struct PlayedUnits {
    pub(super) tree: std::path::PathBuf,
    pub(super) active: RefCell<BTreeMap<String, bool>>,
    pub(super) properties: RefCell<BTreeMap<String, String>>,
    pub(super) asked: RefCell<Vec<String>>,
}

impl PlayedUnits {
    pub(super) fn new(tree: &Tree, active: &[&str]) -> Self {
        Self {
            tree: tree.path().to_owned(),
            active: RefCell::new(active.iter().map(|unit| ((*unit).to_owned(), true)).collect()),
            properties: RefCell::default(),
            asked: RefCell::default(),
        }
    }

    pub(super) fn runs(&self, unit: &str) -> bool {
        self.active.borrow().get(unit).copied().unwrap_or(false)
    }
}

impl ServiceManager for PlayedUnits {
    fn systemctl(&self, arguments: &[&str]) -> io::Result<ToolAnswer> {
        let said = |success, text: String| ToolAnswer { success, text, complaint: String::new() };
        if !matches!(arguments[0], "is-active" | "show") {
            self.asked.borrow_mut().push(arguments.join(" "));
        }
        Ok(match arguments {
            ["is-active", unit] if self.runs(unit) => said(true, "active\n".into()),
            ["is-active", _] => said(false, "inactive\n".into()),
            [verb @ ("start" | "stop"), unit] => {
                self.active.borrow_mut().insert((*unit).into(), *verb == "start");
                said(true, String::new())
            }
            ["show", "-p", property, unit] => {
                let properties = self.properties.borrow();
                let value = properties.get(&format!("{unit} {property}"));
                said(true, format!("{property}={}\n", value.map_or("", String::as_str)))
            }
            ["set-property", "--runtime", unit, setting] => {
                let (property, value) = setting.split_once('=').unwrap();
                let mut properties = self.properties.borrow_mut();
                properties.insert(format!("{unit} {property}"), value.into());
                let folder = self.tree.join(format!("run/systemd/system.control/{unit}.d"));
                fs::create_dir_all(&folder)?;
                fs::write(folder.join(format!("50-{property}.conf")), format!("{setting}\n"))?;
                said(true, String::new())
            }
            ["daemon-reload"] => said(true, String::new()),
            other => panic!("systemctl {other:?}"),
        })
    }
}

/// Tools that change /etc/group of a tree as the real ones do; a file keeps its time, as the lock
/// and the copies that they leave are not what is tested.
#[derive(Debug)]
pub(super) struct PlayedAccounts {
    pub(super) tree: std::path::PathBuf,
    /// The tools that there are.
    pub(super) tools: &'static [&'static str],
    pub(super) asked: RefCell<Vec<String>>,
}

pub(super) const SHADOW: &[&str] = &["groupadd", "gpasswd", "groupdel"];

impl PlayedAccounts {
    pub(super) fn new(tree: &Tree, tools: &'static [&'static str]) -> Self {
        Self { tree: tree.path().to_owned(), tools, asked: RefCell::default() }
    }

    /// Changes the members of a group, by line.
    fn edit(&self, edit: impl FnOnce(&mut Vec<String>) -> Result<(), String>) -> ToolAnswer {
        let path = self.tree.join("etc/group");
        let time = fs::metadata(&path).unwrap().modified().unwrap();
        let mut lines: Vec<String> =
            fs::read_to_string(&path).unwrap().lines().map(str::to_owned).collect();
        let complaint = edit(&mut lines).err().unwrap_or_default();
        fs::write(&path, lines.join("\n") + "\n").unwrap();
        fs::File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
        ToolAnswer { success: complaint.is_empty(), text: String::new(), complaint }
    }

    fn members(&self, group: &str, edit: impl FnOnce(&mut Vec<String>)) -> ToolAnswer {
        self.edit(|lines| {
            let front = format!("{group}:");
            let line = lines.iter_mut().find(|line| line.starts_with(&front));
            let line = line.ok_or(format!("group '{group}' does not exist in /etc/group"))?;
            let (head, members) = line.rsplit_once(':').unwrap();
            let members = members.split(',').filter(|member| !member.is_empty());
            let mut members: Vec<String> = members.map(str::to_owned).collect();
            edit(&mut members);
            *line = format!("{head}:{}", members.join(","));
            Ok(())
        })
    }
}

impl Accounts for PlayedAccounts {
    fn has(&self, program: &str) -> bool {
        self.tools.contains(&program)
    }

    fn run(&self, program: &str, arguments: &[&str]) -> io::Result<ToolAnswer> {
        self.asked.borrow_mut().push(format!("{program} {}", arguments.join(" ")));
        Ok(match (program, arguments) {
            ("groupadd", ["--system", name]) | ("addgroup", ["-S", name]) => self.edit(|lines| {
                lines.push(format!("{name}:x:999:"));
                Ok(())
            }),
            ("groupdel" | "delgroup", [name]) => self.edit(|lines| {
                lines.retain(|line| !line.starts_with(&format!("{name}:")));
                Ok(())
            }),
            ("gpasswd", ["-a", user, _]) | ("addgroup", [user, _]) if *user == "nobody-here" => {
                self.edit(|_| Err(format!("user '{user}' does not exist")))
            }
            ("gpasswd", ["-a", user, group]) | ("addgroup", [user, group]) => {
                self.members(group, |members| members.push((*user).to_owned()))
            }
            ("gpasswd", ["-d", user, group]) | ("delgroup", [user, group]) => {
                self.members(group, |members| members.retain(|member| member != user))
            }
            other => panic!("{other:?}"),
        })
    }
}
