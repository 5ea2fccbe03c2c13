// SPDX-License-Identifier: Apache-2.0
//! The JSON schemas of all documents that verbs print with `-o json` and `-o yaml`; each verb's type is in a file of this folder.
//! `docs/schema/vdoctl-v1` has the generated schemas.

pub(crate) mod adopt;
pub(crate) mod configure;
pub(crate) mod delete;
pub(crate) mod doctor;
pub(crate) mod events;
pub(crate) mod explain;
pub(crate) mod history;
pub(crate) mod matrix;
pub(crate) mod matrix_resolve;
pub(crate) mod mirror;
pub(crate) mod plan;
pub(crate) mod progress;
pub(crate) mod publish;
pub(crate) mod secrets;
pub(crate) mod selftest;
pub(crate) mod status;
pub(crate) mod status_list;
pub(crate) mod support;
pub(crate) mod users;
pub(crate) mod version;
pub(crate) mod volumes;

use super::output::{API_VERSION, View};
use schemars::generate::SchemaSettings;
use serde_json::Value;

/// The schema of every kind of document, by the kind.
#[must_use]
pub fn schemas() -> Vec<(&'static str, Value)> {
    macro_rules! of {
        ($($view:ty),+ $(,)?) => { vec![$(schema::<$view>()),+] };
    }
    of![
        adopt::AdoptionView,
        adopt::MoveView,
        matrix_resolve::ExplanationView,
        matrix_resolve::MatrixDiffView,
        matrix_resolve::OutlookView,
        matrix_resolve::ResolutionView,
        matrix_resolve::WhyNotView,
        doctor::DoctorView,
        doctor::FixedView<'_>,
        doctor::RequiredRolesView,
        doctor::TopologyView<'_>,
        doctor::UndoneView<'_>,
        volumes::VolumesView,
        matrix::MatrixEntryView,
        matrix::MatrixListView,
        matrix::MatrixSourceView,
        mirror::MirrorPruneView,
        mirror::MirrorPullView,
        mirror::MirrorPushView,
        mirror::MirrorVerifyView,
        explain::ConditionView,
        configure::ConfiguredView,
        delete::DeleteView,
        explain::ExitCodeView,
        events::EventsView,
        history::HistoryView,
        progress::ProgressView<'_>,
        explain::ReasonListView,
        explain::ReasonView,
        secrets::SecretsView,
        selftest::SelftestView,
        version::VersionView,
        plan::DiffView,
        plan::PlanView,
        plan::UpgradePlanView,
        publish::ChartComparisonView,
        publish::ChartLintView,
        publish::ImageListView,
        publish::MatrixDigestsView,
        publish::MatrixInitView,
        publish::MatrixLintView,
        publish::MatrixMarkView,
        publish::MatrixPublishView,
        publish::MatrixVerifyView,
        status::StatusView,
        status_list::StatusListView,
        support::SupportBundleView,
        users::UsersPlanView,
        users::UsersReviewView,
        users::UsersView,
    ]
}

/// As it is written: what is always there is required. Fields may be added, so others are allowed.
fn schema<V: View>() -> (&'static str, Value) {
    let generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let mut schema = generator.into_root_schema_for::<V>().to_value();
    let kind = V::KIND;
    let words = [("apiVersion", API_VERSION), ("kind", kind)];
    if let Some(fields) = schema.as_object_mut() {
        fields.insert(
            "$id".into(),
            format!("https://vdo.vmware.com/schema/{API_VERSION}/{kind}.json").into(),
        );
        fields.insert("title".into(), kind.into());
        let properties = fields.entry("properties").or_insert_with(|| Value::Object(Default::default()));
        for (word, value) in words {
            if let Some(properties) = properties.as_object_mut() {
                properties.insert(
                    word.into(),
                    Value::Object([("const".to_owned(), value.into())].into_iter().collect()),
                );
            }
        }
        let required = fields.entry("required").or_insert_with(|| Value::Array(Vec::new()));
        if let Some(required) = required.as_array_mut() {
            required.extend(words.map(|(word, _)| Value::from(word)));
        }
    }
    (kind, schema)
}
