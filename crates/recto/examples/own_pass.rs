//! A select pass and a reduce pass of one's own, and a policy that puts them beside built-in ones.
#![expect(clippy::print_stdout, reason = "an example is there to show")]

use recto::edit::{Change, Edit, Reason};
use recto::item::Item;
use recto::policy::Decorate;
use recto::reduce::{CapOutput, Reduce};
use recto::select::Select;
use recto::view::View;
use recto::{Entry, Error, Log, Policy, Reader, Request, Role, Span, Target, Tokenizer, Tokens, compile_once};

/// Hides thanks and goodbyes of the user.
#[derive(Debug)]
struct DropThanks;

impl Reduce for DropThanks {
    fn name(&self) -> &str {
        "drop-thanks"
    }

    fn propose(&self, view: &View<'_>, _: &Request<'_>) -> Vec<Edit> {
        let thanks = view.editable().filter(|item| item.role() == Role::User && item.cost() < Tokens(12));
        thanks
            .map(|item| Edit {
                change: Change::Hide(Span::one(item.seq())),
                by: "drop-thanks".into(),
                why: Reason::Own { what: "small talk".into() },
                before: item.cost(),
                after: Tokens(0),
                due: None,
            })
            .collect()
    }
}

/// Leaves out whatever another system wrote.
#[derive(Debug)]
struct OnlyOurs;

impl Select for OnlyOurs {
    fn name(&self) -> &str {
        "only-ours"
    }

    fn excludes(&self, item: &Item<'_>, _: &Request<'_>) -> Option<Reason> {
        let is_foreign = item.parts().iter().any(|part| matches!(part, recto::Part::Opaque { .. }));
        is_foreign.then(|| Reason::Own { what: "from another system".into() })
    }
}

fn main() -> Result<(), Error> {
    let mut log = Log::counted_by(Tokenizer::O200k);
    for text in ["Why is the build red?", "Thanks!", "And the nightly, which has been red for a week now?"] {
        log.append(Entry::user(text))?;
        log.append(Entry::assistant("Let me look."))?;
    }
    log.append(Entry::user("Well?"))?;
    let policy = Policy::safe().selecting(OnlyOurs).then(CapOutput::to(2_000).keep_last(1)).then(DropThanks);
    let (reader, target) = (Reader::new("main"), Target::named("gpt-4o").expect("built in"));
    println!("{}", compile_once(&Request::new(&log, &reader, &policy, &target))?.receipt);
    Ok(())
}
