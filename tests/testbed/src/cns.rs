//! Volumes in the simulated vCenter's service for container volumes (CNS), registered as a CSI driver does.

use anyhow::{Context, Result, ensure};
use http_body_util::BodyExt as _;
use kube::client::Body;

use crate::vcenter::Vcenter;
use crate::wait::{PATIENCE, Probe, until};

const MANAGER: &str = r#"<_this type="CnsVolumeManager">cns-volume-manager</_this>"#;

impl Vcenter {
    /// Registers a volume under a cluster id; gives its identifier, which is the handle of a PersistentVolume.
    pub async fn register_volume(&self, cluster_id: &str, name: &str) -> Result<String> {
        let session = self.soap_session().await?;
        let datastore = self.id("Datastore", "LocalDS_0").await?;
        let create = format!(
            "<CnsCreateVolume xmlns=\"urn:vsan\">{MANAGER}<createSpecs><name>{name}</name><volumeType>BLOCK</volumeType>\
             <datastores type=\"Datastore\">{}</datastores><metadata><containerCluster><clusterType>KUBERNETES</clusterType>\
             <clusterId>{cluster_id}</clusterId><vSphereUser>csi</vSphereUser></containerCluster></metadata>\
             <backingObjectDetails xsi:type=\"CnsBlockBackingDetails\"><capacityInMb>1</capacityInMb></backingObjectDetails>\
             </createSpecs></CnsCreateVolume>",
            datastore.trim()
        );
        self.soap("/vsanHealth", &session, &create).await?;
        // Without its type the filter would end the service, which then answers no one.
        let query = format!(
            "<CnsQueryVolume xmlns=\"urn:vsan\">{MANAGER}<filter xsi:type=\"CnsQueryFilter\"><names>{name}</names>\
             <containerClusterIds>{cluster_id}</containerClusterIds></filter></CnsQueryVolume>"
        );
        let id = until(&format!("volume {name} to be registered"), PATIENCE, async || {
            let (_, answer) = self.soap("/vsanHealth", &session, &query).await?;
            let id = answer.split_once("<volumeId><id>").and_then(|(_, rest)| rest.split_once("</id>"));
            Ok(match id {
                Some((id, _)) => Probe::Ready(id.to_owned()),
                None => Probe::not_yet(answer),
            })
        })
        .await?;
        self.soap("/sdk", &session, &of_sessions("Logout", "")).await?;
        Ok(id)
    }

    /// Removes a volume and its registration.
    pub async fn delete_volume(&self, id: &str) -> Result<()> {
        let session = self.soap_session().await?;
        let delete = format!(
            "<CnsDeleteVolume xmlns=\"urn:vsan\">{MANAGER}<volumeIds><id>{id}</id></volumeIds><deleteDisk>true</deleteDisk></CnsDeleteVolume>"
        );
        self.soap("/vsanHealth", &session, &delete).await?;
        self.soap("/sdk", &session, &of_sessions("Logout", "")).await?;
        Ok(())
    }

    /// A session of the administrator under the bare name, so that logins under the whole name are those of others.
    async fn soap_session(&self) -> Result<String> {
        let text = |text: &str| text.replace('&', "&amp;").replace('<', "&lt;");
        let user = self.user().split('@').next().unwrap_or_default();
        let login = format!("<userName>{}</userName><password>{}</password>", text(user), text(self.password()));
        let (cookie, answer) = self.soap("/sdk", "", &of_sessions("Login", &login)).await?;
        cookie.with_context(|| format!("no session: {answer}"))
    }

    /// The cookie and the text of an answer.
    async fn soap(&self, path: &str, session: &str, body: &str) -> Result<(Option<String>, String)> {
        let envelope = format!(
            "<Envelope xmlns=\"http://schemas.xmlsoap.org/soap/envelope/\" xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\"><Body>{body}</Body></Envelope>"
        );
        let request = http::Request::post(path)
            .header("Content-Type", "text/xml")
            .header("Cookie", session)
            .body(Body::from(envelope.into_bytes()))?;
        let answer = self.http()?.send(request).await?;
        let (status, cookie) = (answer.status(), answer.headers().get("Set-Cookie").cloned());
        let text = String::from_utf8(answer.into_body().collect().await?.to_bytes().to_vec())?;
        ensure!(status.is_success(), "{status}: {text}");
        let cookie = cookie.and_then(|cookie| Some(cookie.to_str().ok()?.split(';').next()?.to_owned()));
        Ok((cookie, text))
    }
}

fn of_sessions(method: &str, arguments: &str) -> String {
    format!("<{method} xmlns=\"urn:vim25\"><_this type=\"SessionManager\">SessionManager</_this>{arguments}</{method}>")
}
