// SPDX-License-Identifier: Apache-2.0
//! `--existing` and `--shared`: a user or a group of another owner gets roles and permissions, and nothing of it is changed; one account for
//! both drivers.

use super::refused::{PASSWORD, administrator, is_refused};
use super::{done, held, typed, users};
use crate::common::{Bed, NS};
use anyhow::{Result, ensure};
use serde_json::{Value, json};
use vdo_admin::accounts::{Principal, Step};
use vdo_api::types::Secret;

const USER: &str = "storage@vsphere.local";
const GROUP: &str = "keepers@vsphere.local";
const SECRET: &str = "vdo-csi-credentials";
const NOW: jiff::Timestamp = jiff::Timestamp::UNIX_EPOCH;

pub async fn only_gets_roles(bed: &Bed) -> Result<()> {
    let admin = administrator(bed).await?;
    let user = USER.to_owned();
    let description = "storage team".to_owned();
    admin
        .carry_out(&Step::CreateUser { user, description }, &Secret::new(PASSWORD), NOW)
        .await?;
    let principal: Principal = USER.parse()?;
    let before = admin.person(&principal, NOW).await?;
    let ended = life(bed).await;
    ensure!(admin.person(&principal, NOW).await? == before, "the user was changed");
    let user = USER.to_owned();
    admin.carry_out(&Step::DeleteUser { user }, &Secret::default(), NOW).await?;
    let live = admin.authorization().await?;
    admin.close().await;
    ended?;
    let left = live.permissions.iter().filter(|one| principal.is(&one.principal) || one.group);
    ensure!(left.count() == 0 && !live.roles.iter().any(|role| role.is_ours()), "{live:?}");
    Ok(())
}

async fn life(bed: &Bed) -> Result<()> {
    let own = typed(bed);
    let own: Vec<&str> = own.iter().map(String::as_str).collect();
    let with = |more: &[&'static str]| [&own[..], more].concat();
    // What makes no sense is refused before anything is asked.
    is_refused(bed, &["--shared"], 2, ["--shared", "--vcenter"])?;
    is_refused(
        bed,
        &with(&["--existing", "storage", "--for", "csi"]),
        2,
        ["\"storage\" is not a user name with a domain", "k8s@"],
    )?;
    is_refused(
        bed,
        &with(&["--existing", USER]),
        2,
        [
            "each driver has a separate account, but the command names only one account",
            "--shared",
        ],
    )?;
    let (code, text) = users(bed, "rotate", &with(&["--existing", USER, "--for", "csi", "--yes"]))?;
    ensure!(code == 2 && text.contains("vdoctl rotates only accounts"), "exit {code}\n{text}");
    let unknown = with(&["--existing", "unknown@corp.example.com", "--for", "csi"]);
    is_refused(bed, &unknown, 6, ["UserNotFound", "no such user or group in the identity sources"])?;
    done(bed, "delete", &[&unknown[..], &["--yes"]].concat())?;

    // Without its password it gets roles and permissions, and no Secret is written; nor with a wrong one.
    let csi = with(&["--existing", USER, "--for", "csi"]);
    let text = done(bed, "create", &[&csi[..], &["--yes"]].concat())?;
    ensure!(text.contains("it does not know the password"), "{text}");
    let file = bed.cluster.dir().join("storage-password");
    let path = file.display().to_string();
    let checked = [&csi[..], &["--account-password-file", &path]].concat();
    std::fs::write(&file, "wrong")?;
    is_refused(bed, &checked, 6, ["no Secret was written", "does not accept"])?;
    ensure!(held(bed, SECRET).await?.is_none(), "the Secret was written");
    // With the right one it logs in, may do what is needed and no more, and is in the Secret.
    std::fs::write(&file, PASSWORD)?;
    let text = done(bed, "create", &[&checked[..], &["--yes"]].concat())?;
    std::fs::remove_file(&file)?;
    ensure!(text.contains(&format!("logged in as {USER}")), "{text}");
    let secret = held(bed, SECRET).await?;
    ensure!(secret.is_some_and(|held| held.user == USER && held.password.expose() == PASSWORD));
    let text = done(bed, "verify", &csi)?;
    ensure!(text.contains("has exactly the needed privileges"), "{text}");
    let listed: Value = serde_json::from_str(&done(bed, "list", &["-o", "json"])?)?;
    ensure!(
        listed["accounts"] == json!([]) && listed["roles"][0]["usedBy"] == json!([principal()?.down_level()]),
        "{listed}"
    );
    let text = done(bed, "delete", &[&csi[..], &["--yes"]].concat())?;
    ensure!(!text.contains("delete user"), "{text}");
    bed.delete("v1", "Secret", NS, SECRET).await?;

    // A group: its members have what it has.
    bed.vcenter.join(USER, GROUP).await?;
    let group = with(&["--existing", GROUP, "--group", "--for", "csi"]);
    done(bed, "create", &[&group[..], &["--yes"]].concat())?;
    let text = done(bed, "verify", &group)?;
    ensure!(text.contains("has exactly the needed privileges"), "{text}");
    let text = done(bed, "verify", &csi)?;
    ensure!(text.contains("has exactly the needed privileges"), "{text}");
    done(bed, "delete", &[&group[..], &["--yes"]].concat())?;
    Ok(())
}

fn principal() -> Result<Principal> {
    Ok(USER.parse()?)
}
