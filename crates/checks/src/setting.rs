//! Values of knobs, as checks that need more than one of them read them.

use rtproof_host::{Facts, Knob, Reading, facts::settings::Value};

/// Every value of a knob: one for each CPU or device, in the order of their names.
pub(super) fn all<'a>(facts: &'a Facts, knob: &Knob) -> &'a [Value] {
    facts.settings.get(knob.id).map_or(&[], |setting| &setting.values)
}

/// Its first value. What a record of an earlier rtproof does not hold is refused, not absent.
pub(super) fn text(facts: &Facts, knob: &Knob) -> Reading<String> {
    let path = knob.patterns().next().unwrap_or(knob.id);
    match facts.settings.get(knob.id).map(|setting| setting.values.first()) {
        Some(Some(value)) => value.reading.clone(),
        Some(None) => Reading::absent(path),
        None => Reading::denied(path, "not asked"),
    }
}

/// Its first value, a number.
pub(super) fn number(facts: &Facts, knob: &Knob) -> Reading<i64> {
    text(facts, knob).and_then(|path, text| match text.parse() {
        Ok(number) => Reading::known(path, number),
        Err(_) => Reading::malformed(path, &text, "a number"),
    })
}

/// What is known to lack the file, where it is not there.
pub(super) fn lacking<'a>(facts: &'a Facts, knob: &Knob) -> Option<&'a Reading<String>> {
    let lacking = facts.settings.get(knob.id)?.lacking.as_ref()?;
    lacking.value().is_some().then_some(lacking)
}
