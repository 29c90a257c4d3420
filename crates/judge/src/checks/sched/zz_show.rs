#[test]
fn show() {
    let paths = std::env::var("SHOW").unwrap_or_default();
    for path in paths.split(':').filter(|p| !p.is_empty()) {
        let root = if path == "live" {
            rtproof_host::Root::live()
        } else {
            rtproof_host::Root::open_path(path).unwrap()
        };
        let facts = rtproof_host::Facts::read(&root);
        let online = facts.cpus.online.value().cloned().unwrap_or_default();
        let n = online.iter().count() as u32;
        let rt = rtproof_host::CpuList::new(online.iter().skip((n / 2) as usize));
        let intent = crate::Intent {
            rt_cpus: rt.clone(),
            housekeeping: online.difference(&rt),
            ..crate::checks::testing::intent()
        };
        println!("===== {path} rt {rt}");
        for check in super::CHECKS
            .iter()
            .copied()
            .chain(super::rules::RULES.iter().map(|r| r as &dyn crate::checks::Check))
        {
            let f = check.judge(&facts, &intent);
            println!("{:?} {}: {}", f.status, f.check, f.summary);
        }
    }
}
