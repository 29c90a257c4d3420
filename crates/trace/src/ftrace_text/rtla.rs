//! What `rtla timerlat --auto-analysis` prints when it stops: its numbers, as it tells them.

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RtlaText {
    /// By CPU, in the order of the text.
    pub cpus: Vec<RtlaCpu>,
}

/// What rtla said of one CPU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RtlaCpu {
    pub cpu: u32,
    /// The parts, in the order of the text; the last of them, behind the rule, is the latency.
    pub parts: Vec<RtlaPart>,
    /// Stack of the thread that was in the way, innermost first.
    pub stack: Vec<String>,
}

/// One of its numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RtlaPart {
    /// What it is, e.g. `IRQ handler delay`.
    pub name: String,
    /// How long; `None`: unknown.
    pub ns: Option<u64>,
    /// Hundredths of a percent of the latency, as reported.
    pub share_e4: Option<u32>,
    /// A remark in parentheses, e.g. `exit from idle`.
    pub remark: Option<String>,
    /// Who, e.g. name and number of a task or an interrupt, and how long each.
    pub who: Vec<(String, i32, Option<u64>)>,
}

impl RtlaCpu {
    /// The part of a name.
    pub fn part(&self, name: &str) -> Option<&RtlaPart> {
        self.parts.iter().find(|part| part.name == name)
    }
}

/// Reads what rtla printed. `None`: it did not analyse anything there.
pub fn parse_rtla(text: &str) -> Option<RtlaText> {
    let mut found = RtlaText::default();
    for line in text.lines() {
        let trimmed = line.trim();
        if let Some(rest) = trimmed.strip_prefix("## CPU ") {
            let cpu = rest.split_whitespace().next().and_then(|cpu| cpu.parse().ok());
            if let Some(cpu) = cpu {
                found.cpus.push(RtlaCpu { cpu, ..RtlaCpu::default() });
            }
            continue;
        }
        let Some(cpu) = found.cpus.last_mut() else { continue };
        if let Some(symbol) = trimmed.strip_prefix("-> ") {
            cpu.stack.push(symbol.trim().to_owned());
        } else if let Some(part) = part(trimmed) {
            cpu.parts.push(part);
        } else if let (Some(who), Some(part)) = (who(trimmed), cpu.parts.last_mut()) {
            part.who.push(who);
        }
    }
    (!found.cpus.is_empty()).then_some(found)
}

/// `IRQ handler delay:   (exit from idle)   27.49 us (65.52 %)`, `Blocking thread:`
fn part(text: &str) -> Option<RtlaPart> {
    let (name, rest) = text.split_once(':')?;
    // Of those that are indented the number follows at once.
    if rest.starts_with(|letter: char| letter.is_ascii_digit() || letter == '-') {
        return None;
    }
    let mut part = RtlaPart { name: name.trim().to_owned(), ..RtlaPart::default() };
    let mut rest = rest.trim();
    if let Some((remark, behind)) = rest.strip_prefix('(').and_then(|rest| rest.split_once(')')) {
        part.remark = Some(remark.to_owned());
        rest = behind.trim();
    }
    if rest.is_empty() {
        return Some(part);
    }
    let (us, behind) = rest.split_once(" us")?;
    part.ns = Some(decimal(us.trim(), 3)?);
    let share = behind.trim().strip_prefix('(').and_then(|share| share.split_once('%'));
    let share = share.and_then(|(share, _)| decimal(share.trim(), 2));
    part.share_e4 = share.and_then(|share| u32::try_from(share).ok());
    Some(part)
}

/// `objtool:49256   3.79 us`
fn who(text: &str) -> Option<(String, i32, Option<u64>)> {
    let mut words = text.rsplitn(2, ':');
    let (rest, name) = (words.next()?, words.next()?);
    let mut words = rest.split_whitespace();
    let number = words.next()?.parse().ok()?;
    let ns = match (words.next(), words.next()) {
        (Some(us), Some("us")) => Some(decimal(us, 3)?),
        _ => None,
    };
    Some((name.trim().to_owned(), number, ns))
}

/// `27.49` with so many digits behind the point, as a whole number.
fn decimal(text: &str, digits: usize) -> Option<u64> {
    let (whole, parts) = text.split_once('.').unwrap_or((text, ""));
    if !parts.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let parts = format!("{:0<digits$}", parts.get(..digits).unwrap_or(parts));
    let scale = 10_u64.pow(u32::try_from(digits).ok()?);
    whole.parse::<u64>().ok()?.checked_mul(scale)?.checked_add(parts.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "## CPU 0 hit stop tracing, analyzing it ##\n\
        \x20 IRQ handler delay:        \t(exit from idle)\t    27.49 us (65.52 %)\n\
        \x20 IRQ latency:                                   28.1 us\n\
        \x20 Blocking thread:                                3.79 us (9.03 %)\n\
        \x20            kworker/u8:1:49256                   3.79 us\n\
        \x20   Blocking thread stack trace\n\
        \x20               -> timerlat_irq\n\
        -------------------------------------------\n\
        \x20 Thread latency:                                41.96 us (100%)\n";

    #[test]
    fn its_numbers_come_out_as_it_tells_them() {
        let text = parse_rtla(TEXT).expect("an analysis");
        let cpu = &text.cpus[0];
        let delay = cpu.part("IRQ handler delay").expect("a part");
        assert_eq!((delay.ns, delay.share_e4), (Some(27_490), Some(6_552)));
        assert_eq!(delay.remark.as_deref(), Some("exit from idle"));
        assert_eq!(cpu.part("IRQ latency").and_then(|part| part.ns), Some(28_100));
        let blocking = cpu.part("Blocking thread").expect("a part");
        assert_eq!(blocking.who, [("kworker/u8:1".to_owned(), 49_256, Some(3_790))]);
        assert_eq!(cpu.stack, ["timerlat_irq"]);
        assert_eq!(cpu.parts.last().and_then(|part| part.share_e4), Some(10_000));
        assert_eq!(parse_rtla("Timer Latency\n"), None);
    }
}
