//! Request bodies, checked before anybody sees them.

use crate::codes::Code;
use crate::failure::Failure;
use crate::talk;
use recto::Target;
use recto::page::Page;
use recto::transcript::Asked;
use recto::wire::{Violation, Wire};

/// How many broken rules are told.
const VIOLATIONS_TOLD_MAX: usize = 3;

/// Returns the body of a page, with the fields that a client's request in the same format had beside its messages.
pub(crate) fn of(page: &Page, target: &Target, given: Option<&Asked>) -> Result<Vec<u8>, Failure> {
    let wire = target.wire;
    note_left_out(given, wire);
    let Some(given) = given.filter(|given| given.wire == wire && !given.extra.is_empty()) else {
        return checked(wire.encode(page, target), wire, || false);
    };
    checked(wire.encode_with(page, target, &given.extra), wire, || wire.validate(&wire.encode(page, target)).is_empty())
}

/// Returns a body if it breaks no rule; else it tells whose fault it is, the request's own fields' or Recto's.
pub(crate) fn checked(body: Vec<u8>, wire: Wire, is_valid_without: impl Fn() -> bool) -> Result<Vec<u8>, Failure> {
    let broken = wire.validate(&body);
    if broken.is_empty() {
        return Ok(body);
    }
    let failure = if is_valid_without() {
        Failure::of(Code::BadFields, format!("fields of the request itself make it one that {wire} refuses"))
            .hinting("remove or correct them, or take another --for")
    } else {
        Failure::of(Code::Defect, format!("the body would be one that {wire} refuses"))
            .hinting("this is a defect in Recto: please report it with the conversation that caused it")
    };
    Err(broken.iter().take(VIOLATIONS_TOLD_MAX).map(Violation::to_string).fold(failure, Failure::because))
}

/// Says on stderr which fields of a request don't pass through, because only their own format has them.
pub(crate) fn note_left_out(given: Option<&Asked>, wire: Wire) {
    let Some(given) = given.filter(|given| given.wire != wire && !given.extra.is_empty()) else { return };
    let fields: Vec<&str> = given.extra.keys().map(String::as_str).collect();
    talk::note(&format!("fields of the request that only {} has were left out: {}", given.wire, fields.join(", ")));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paint::Colour;

    #[test]
    fn a_body_that_breaks_a_rule_never_gets_out() {
        let wire = Wire::OpenaiChat;
        let told = |is_valid_without: bool| {
            let failure = checked(b"{}".to_vec(), wire, || is_valid_without).unwrap_err();
            failure.told(Colour::Never.on_stderr())
        };
        let (defect, fields) = (told(false), told(true));
        assert!(defect.starts_with("error[R0105]: the body would be one that openai_chat refuses\n"), "{defect}");
        assert!(fields.starts_with("error[R0318]: "), "{fields}");
        for told in [defect, fields] {
            assert!(told.contains("\ncause: model: missing\n") && told.contains("\nhint: "), "{told}");
        }
        let good = br#"{"model":"m","messages":[{"role":"user","content":"Hi"}]}"#.to_vec();
        assert_eq!(checked(good.clone(), wire, || false).unwrap(), good);
    }
}
