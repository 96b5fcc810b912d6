//! What every store promises: one function a behaviour, run on each store that is listed here.

mod conversations;
mod erase;
mod forks;
mod index;
mod keys;
mod links;
mod log;
pub(crate) mod make;
mod model;
mod readers;
mod records;

use crate::folder::TempFolder;
use recto_engine::store::memory::Memory;
use recto_engine::store::sqlite::Sqlite;

/// Lists the behaviours; each becomes a test of the store, or all together become one.
macro_rules! behaviours {
    ($tests:ident, $store:ident, $open:expr, $lives:expr) => {
        $tests! { $store, $open, $lives;
            conversations::a_new_conversation_is_empty_and_told_as_it_was_made,
            conversations::a_name_is_given_once,
            conversations::names_are_listed_in_order_and_in_pages,
            conversations::tenants_never_see_each_other,
            conversations::every_verb_says_that_a_conversation_is_unknown,
            conversations::names_that_are_too_long_are_refused,
            conversations::the_version_rises_with_everything_that_is_written,
            log::places_are_dense_from_zero,
            log::an_append_of_none_is_one,
            log::an_expected_head_must_be_the_head,
            log::a_repeated_key_is_answered_with_the_first_result,
            log::a_key_of_another_body_is_refused,
            log::given_places_are_kept_and_those_between_stay_free,
            log::a_place_that_is_not_behind_all_others_is_a_conflict,
            log::a_place_beyond_the_last_is_refused,
            log::a_batch_that_is_too_large_is_refused_whole,
            log::rows_are_read_as_they_were_written,
            log::every_row_tells_what_the_log_holds_up_to_it,
            log::rows_are_read_back_in_pages_by_strand_and_up_to_a_budget,
            log::rows_are_read_forth_in_pages,
            log::single_rows_are_read_once_and_in_order,
            log::tallies_are_those_of_the_row_at_or_before_a_place,
            log::the_first_of_a_strand_is_found_from_any_place,
            log::batches_of_many_callers_stay_whole,
            forks::a_fork_shares_what_was_said_and_goes_on_alone,
            forks::a_fork_may_begin_anywhere_up_to_the_head,
            forks::a_fork_of_a_fork_sees_both,
            forks::strands_of_a_fork_are_numbered_as_they_begin_in_it,
            forks::a_fork_at_the_head_inherits_all_of_a_reader,
            forks::a_fork_before_the_head_inherits_the_calls_up_to_there,
            forks::a_reader_goes_on_alone_in_a_fork,
            forks::records_keys_and_open_calls_are_not_inherited_and_contents_are,
            forks::a_chain_of_forks_deeper_than_the_bound_reads_the_same,
            readers::a_reader_that_nobody_wrote_to_has_made_no_calls,
            readers::decisions_and_calls_are_numbered_on,
            readers::a_commit_on_something_that_has_changed_is_refused_whole,
            readers::numbers_that_do_not_go_on_are_a_defect,
            readers::a_receipt_that_is_too_long_is_refused,
            readers::decisions_are_found_by_what_they_are_about,
            readers::decisions_are_read_as_they_were_at_a_ticket,
            readers::calls_are_found_by_their_heads,
            readers::of_many_commits_on_the_same_row_one_wins,
            readers::an_open_call_can_be_read_and_abandoned,
            readers::an_answer_is_written_in_one_step,
            readers::an_answer_to_no_open_call_is_a_conflict,
            readers::an_answer_that_is_refused_changes_nothing,
            readers::a_repeated_answer_gets_the_first_result,
            records::a_record_is_replaced_by_the_next_version_only,
            records::what_goes_with_an_append_is_written_with_it_or_not_at_all,
            records::a_record_from_elsewhere_keeps_its_version_and_replaces_no_newer_one,
            records::records_are_listed_by_kind_in_the_order_of_their_keys,
            records::contents_are_found_by_digest,
            keys::a_key_is_found_by_what_identifies_it_and_by_nothing_else,
            keys::a_name_of_a_key_is_given_once,
            keys::a_revoked_key_stays_on_record,
            keys::keys_of_all_tenants_are_listed_by_name,
            keys::a_key_with_a_name_that_is_too_long_is_refused,
            links::a_conversation_can_begin_with_its_first_entries,
            links::places_are_found_by_what_stands_before_them,
            links::free_places_are_found_first_and_never_too_many,
            index::entries_are_found_by_their_terms_the_newest_first,
            index::conversations_do_not_find_each_others_entries,
            index::a_fork_finds_what_it_shares,
            index::what_was_erased_is_found_no_more,
            erase::bodies_may_go_with_the_decision_that_replaces_them_or_not_at_all,
            erase::a_place_that_a_fork_has_filled_is_its_own,
            erase::an_erased_conversation_leaves_its_name_and_nothing_else,
            erase::a_conversation_with_forks_is_not_erased_without_a_word,
            erase::forks_are_erased_with_it_when_told,
            erase::an_erased_entry_keeps_its_place_size_and_hash,
            erase::a_large_text_stays_while_another_entry_refers_to_it,
            erase::a_shared_entry_is_erased_for_all,
            erase::decisions_that_quote_an_erased_entry_are_rewritten,
            erase::an_erase_of_what_does_not_exist_changes_nothing,
        }
    };
}

macro_rules! each {
    ($store:ident, $open:expr, $lives:expr; $($area:ident::$behaviour:ident,)+) => {
        mod $store {
            $(
                #[tokio::test]
                async fn $behaviour() {
                    // What the store stands on is dropped after it.
                    let (_ground, store) = $open;
                    super::$area::$behaviour(store).await;
                }
            )+

            #[test]
            fn what_the_store_in_memory_does_is_done() {
                let (_ground, store) = $open;
                super::model::compare(&store, $lives);
            }
        }
    };
}

/// For a store that takes long to start.
macro_rules! together {
    ($store:ident, $open:expr, $lives:expr; $($area:ident::$behaviour:ident,)+) => {
        mod $store {
            #[tokio::test]
            async fn every_behaviour_holds() {
                $(
                    println!("{}::{}", stringify!($area), stringify!($behaviour));
                    let (_ground, store) = $open;
                    Box::pin(super::$area::$behaviour(store)).await;
                )+
            }

            #[test]
            fn what_the_store_in_memory_does_is_done() {
                let (_ground, store) = $open;
                super::model::compare(&store, $lives);
            }
        }
    };
}

behaviours!(each, memory, ((), super::Memory::default()), super::model::Lives::Many);
behaviours!(each, sqlite, super::sqlite(), super::model::Lives::Many);
behaviours!(each, postgres, crate::postgres::opened(), super::model::Lives::Few);
behaviours!(together, prepared, crate::postgres::prepared(), super::model::Lives::Few);
behaviours!(together, pooled, crate::postgres::pooled::opened(), super::model::Lives::Few);

fn sqlite() -> (TempFolder, Sqlite) {
    let folder = TempFolder::new();
    let store = Sqlite::open(folder.path().join("store.db")).expect("a new store can be opened");
    (folder, store)
}

#[test]
fn two_stores_on_one_file_do_together_what_the_store_in_memory_does() {
    let (folder, one) = sqlite();
    let two = Sqlite::open(folder.path().join("store.db")).expect("it is there");
    model::compare_in_turns(&[one, two], model::Lives::Many);
}
