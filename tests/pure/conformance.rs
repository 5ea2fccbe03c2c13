// SPDX-License-Identifier: Apache-2.0
//! Every case of csi-sanity that does not pass has a reason, and every reason has such a case. Whether the cases still end in this way is what
//! `real_csi_conformance_ends_as_the_page_shows` finds out.

use crate::generate::conformance::reasons::{REASONS, is_of};
use crate::generate::conformance::results;
use crate::sources::root;

#[test]
fn conformance_cases_that_do_not_pass_have_one_reason_each() {
    let results = results(root()).expect("results");
    assert!(results.cases.len() > 80, "only {} cases", results.cases.len());
    for case in results.cases.iter().filter(|case| !case.passed()) {
        let reasons = REASONS.iter().filter(|entry| entry.covers(&case.name)).count();
        assert_eq!(reasons, 1, "reasons for {}", case.name);
    }
}

#[test]
fn conformance_reasons_are_of_cases_that_do_not_pass() {
    let results = results(root()).expect("results");
    for known in REASONS.iter().flat_map(|entry| entry.cases) {
        let mut of = results.cases.iter().filter(|case| is_of(known, &case.name)).peekable();
        assert!(of.peek().is_some(), "csi-sanity has no case {known}");
        for case in of {
            assert!(!case.passed(), "{} passes: take it out of the reasons", case.name);
        }
    }
}
