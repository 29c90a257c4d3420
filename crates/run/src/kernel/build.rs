//! Builds a kernel out of tree, or tests whether configurations build.

use std::{
    fs,
    path::{Path, PathBuf},
};

use rtproof_results::kernel::build::{
    BuildTest, BuildTests, BuiltFile, BuiltKernel, SCHEMA, TESTS_SCHEMA,
};

use super::{
    error::KernelError,
    make::Make,
    source::Tree,
    tool::{Log, OnProgress},
};

/// What `kernel build` makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Product {
    /// The kernel's image, and its modules where it has some.
    Image,
    Deb,
    /// The kernel's image alone.
    Kernel,
}

/// Builds what `make.objects` is configured for.
///
/// # Errors
/// No configuration, a program that is missing, whatever the build says.
pub fn build(
    tree: &Tree,
    make: Make,
    place: &Path,
    product: Product,
    jobs: usize,
    observer: OnProgress<'_>,
) -> Result<BuiltKernel, KernelError> {
    let objects = make.objects.clone();
    let config = objects.join(".config");
    make.check_arch()?;
    let text = read(&config).map_err(|error| {
        KernelError::path(
            &config,
            format!("{error}; make one with `rtproof kernel config`, or give --config"),
        )
    })?;
    make.check_config(&config, &text)?;
    make.check_tools()?;
    // The first that a build makes (Kbuild); configuring makes less.
    let continued = objects.join("include/generated/bounds.h").exists();
    let (make, ccache) = make.with_ccache();
    let mut log = Log::begin(place.join("build.log"))?;
    // Options that the configuration does not name get their defaults; make would ask for them.
    log.done("olddefconfig", make.command(&["olddefconfig"])?, observer)?;
    let target = match product {
        Product::Image => "all".to_owned(),
        Product::Deb => "bindeb-pkg".to_owned(),
        // The makefile's own name for it.
        Product::Kernel => make.ask("image_name")?.rsplit('/').next().unwrap_or("all").to_owned(),
    };
    let jobs = format!("-j{jobs}");
    let before = packages(place);
    let mut command = make.command(&[&target])?;
    command.arg(jobs);
    let ran = log.done("make", command, observer)?;
    let release = make.ask("kernelrelease")?;
    let image = objects.join(make.ask("image_name")?);
    let mut files = vec![file(&image)?, file(&config)?];
    let new = packages(place).into_iter().filter(|it| !before.contains(it));
    for (path, _) in new {
        files.push(file(&path)?);
    }
    let text = read(&config).map_err(KernelError::io(&config))?;
    let preempt_rt = text.lines().find_map(|line| line.strip_prefix("CONFIG_PREEMPT_RT="));
    Ok(BuiltKernel {
        schema: SCHEMA,
        release,
        kernel_source: tree.path.display().to_string(),
        patches: tree.patches.clone(),
        files,
        continued,
        ccache,
        objects: ran.objects,
        warnings: ran.warnings,
        seconds: ran.seconds,
        log: log.path.display().to_string(),
        preempt_rt: preempt_rt.unwrap_or("n").to_owned(),
    })
}

/// Builds each configuration in a folder of its own; one that fails does not stop the others.
///
/// # Errors
/// A program that is missing, or a folder that cannot be written. A build that fails is a row.
pub fn test(
    tree: &Tree,
    make: &Make,
    place: &Path,
    configs: &[String],
    jobs: usize,
    observer: OnProgress<'_>,
) -> Result<BuildTests, KernelError> {
    make.check_arch()?;
    make.check_tools()?;
    let mut rows = Vec::new();
    for config in configs {
        let folder = place.join(format!("test-{config}"));
        fs::create_dir_all(&folder).map_err(KernelError::io(&folder))?;
        let (make, _) = Make { objects: folder.clone(), ..make.clone() }.with_ccache();
        let mut log = Log::begin(place.join(format!("test-{config}.log")))?;
        let mut ran = log.run(config, make.command(&[config])?, observer)?;
        if ran.succeeded {
            let mut command = make.command(&["all"])?;
            command.arg(format!("-j{jobs}"));
            ran = log.run(&format!("{config}: make"), command, observer)?;
        }
        rows.push(BuildTest {
            config: config.clone(),
            builds: ran.succeeded,
            objects: ran.objects,
            warnings: ran.warnings,
            seconds: ran.seconds,
            errors: if ran.succeeded { Vec::new() } else { ran.errors },
            log: log.path.display().to_string(),
        });
    }
    Ok(BuildTests { schema: TESTS_SCHEMA, kernel_source: tree.path.display().to_string(), rows })
}

/// Puts a configuration in its place; one that is there and differs is not replaced.
///
/// # Errors
/// It cannot be read, or another one is there.
#[expect(clippy::disallowed_methods, reason = "the user's own configuration")]
pub fn take_config(from: &Path, objects: &Path) -> Result<(), KernelError> {
    let bytes = fs::read(from).map_err(KernelError::io(from))?;
    let to = objects.join(".config");
    match fs::read(&to) {
        Ok(there) if there == bytes => return Ok(()),
        Ok(_) => {
            let why = format!(
                "another configuration is there than {}; remove it, or name another folder",
                from.display()
            );
            return Err(KernelError::path(to, why));
        }
        Err(_) => {}
    }
    crate::file::write_whole(&to, |file| Ok(file.write_all(&bytes)?))
        .map_err(|error| KernelError::path(to, format!("{error:#}")))
}

/// Packages in the folder, where bindeb-pkg puts them: above the objects; with their times.
#[expect(clippy::disallowed_methods, reason = "the user's own build")]
fn packages(place: &Path) -> Vec<(PathBuf, Option<std::time::SystemTime>)> {
    let entries = fs::read_dir(place).into_iter().flatten().filter_map(Result::ok);
    let paths = entries.map(|entry| entry.path());
    let debs = paths.filter(|path| path.extension().is_some_and(|ending| ending == "deb"));
    debs.map(|path| (path.clone(), path.metadata().and_then(|of| of.modified()).ok())).collect()
}

fn file(path: &Path) -> Result<BuiltFile, KernelError> {
    let of = path.metadata().map_err(KernelError::io(path))?;
    Ok(BuiltFile { path: path.display().to_string(), bytes: of.len() })
}

#[expect(clippy::disallowed_methods, reason = "the user's own build")]
fn read(path: &Path) -> std::io::Result<String> {
    fs::read_to_string(path)
}
