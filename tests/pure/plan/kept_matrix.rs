// SPDX-License-Identifier: Apache-2.0
//! The matrix in the inventory.

use super::simulation::{Case, Listed, Live, NOTHING, Slot, at, with};
use std::sync::Arc;
use vdo_core::matrix::StoredMatrix;
use vdo_core::plan::{Input, Record, Step};

/// The matrix that is used is kept as soon as it is used, and once.
#[test]
fn inventory_keeps_matrix_once_it_is_used() {
    let there = Slot {
        wanted: Some(0),
        live: Live::Ours(0),
        listed: Listed::SameUid,
        ..NOTHING
    };
    let mut case = with(&[(at("ConfigMap", "cpi"), there)]);
    case.world = case.converge(None).0;
    let kept = |version| {
        Some(Arc::new(StoredMatrix::of(
            ("s".into(), version, None),
            (b"index", None, None),
            [].into(),
        )))
    };
    let steps = |case: &Case, matrix: Option<Arc<StoredMatrix>>| {
        let (observed, record) = (
            case.world.observed(),
            Record {
                matrix,
                ..Record::default()
            },
        );
        let input = Input {
            record: &record,
            ..case.world.input(&case.desired, &observed)
        };
        case.world.plan_for(&input, |_| {}).steps
    };
    let first = steps(&case, kept(1));
    let [Step::Record(inventory)] = &first[..] else {
        panic!("{first:?}")
    };
    assert_eq!(inventory.matrix, kept(1));
    case.world.inventory.matrix = kept(1);
    assert!(steps(&case, kept(1)).is_empty(), "nothing is new");
    assert!(steps(&case, None).is_empty(), "what is not known is not forgotten");
    assert!(matches!(&steps(&case, kept(2))[..], [Step::Record(inventory)] if inventory.matrix == kept(2)));
}
