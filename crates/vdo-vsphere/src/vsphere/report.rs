// SPDX-License-Identifier: Apache-2.0
//! Runs all checks of one inspection in order, before and after the login, and returns the report.

use super::checks_after_login::add_checks_after_login;
use super::checks_before_login::add_checks_before_login;
use super::{ConnectionReport, Inspection};
use jiff::Timestamp;

/// The checks of an inspection. When the connection is `known` to have worked as it is specified now, an outage makes a check unknown
/// instead of false.
#[must_use]
pub fn report(inspection: &Inspection, known: bool, now: Timestamp) -> ConnectionReport {
    let mut report = ConnectionReport::default();
    add_checks_before_login(&mut report, inspection, known, now);
    add_checks_after_login(&mut report, inspection);
    report
}
