//! How the answer is shown: colours, width, how much of it. Stated once for all commands, kept for
//! the process.

use std::sync::OnceLock;

use anstream::ColorChoice;
use rtproof_report::text::{WIDTH_MAX, WIDTH_MIN};

/// Columns where there is no terminal and `COLUMNS` is not set.
const WIDTH_ELSEWHERE: usize = 100;

/// Options that every command has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::Args)]
#[command(next_help_heading = "Output")]
pub struct Manners {
    /// Colours; auto: on a terminal, unless NO_COLOR or CLICOLOR=0 is set
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value_t)]
    color: Color,

    /// Print the answer alone: result, reasons, next command; errors and warnings stay
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    quiet: bool,

    /// Print details, too: what was read and why it matters; moments of the measured values
    #[arg(short, long, global = true)]
    verbose: bool,
}

/// `--color`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Color {
    /// Where stdout is a terminal.
    #[default]
    Auto,
    /// Everywhere.
    Always,
    /// Nowhere.
    Never,
}

static MANNERS: OnceLock<Manners> = OnceLock::new();

impl Manners {
    /// Keeps them for the process; the first call counts.
    pub fn keep(self) {
        set_color(self.color);
        let _ = MANNERS.set(self);
    }
}

/// Sets the colours of stdout and stderr. Without a choice the environment and the terminal decide.
fn set_color(color: Color) {
    match color {
        Color::Auto => {}
        Color::Always => ColorChoice::Always.write_global(),
        Color::Never => ColorChoice::Never.write_global(),
    }
}

/// Colours of the help, which is printed before the arguments are known as a whole.
pub fn color_of(mut args: impl Iterator<Item = std::ffi::OsString>) {
    while let Some(arg) = args.next() {
        let value = match arg.to_str() {
            Some("--") => return,
            Some("--color") => args.next().and_then(|value| value.to_str().map(str::to_owned)),
            Some(arg) => arg.strip_prefix("--color=").map(str::to_owned),
            None => None,
        };
        match value.as_deref() {
            Some("always") => set_color(Color::Always),
            Some("never") => set_color(Color::Never),
            _ => {}
        }
    }
}

fn kept() -> Manners {
    MANNERS.get().copied().unwrap_or_default()
}

/// Whether the answer alone is wanted.
pub(crate) fn is_quiet() -> bool {
    kept().quiet
}

/// Whether details are wanted.
pub(crate) fn is_verbose() -> bool {
    kept().verbose
}

/// Columns of text: those of the terminal or of `COLUMNS`, within bounds; else always the same.
pub(crate) fn width() -> usize {
    static WIDTH: OnceLock<usize> = OnceLock::new();
    *WIDTH.get_or_init(|| {
        let size = rustix::termios::tcgetwinsize(std::io::stdout());
        let terminal =
            size.ok().map(|size| usize::from(size.ws_col)).filter(|&columns| columns > 0);
        let stated = || std::env::var("COLUMNS").ok()?.parse().ok();
        let columns = terminal.or_else(stated).unwrap_or(WIDTH_ELSEWHERE);
        columns.clamp(WIDTH_MIN, WIDTH_MAX)
    })
}
