// SPDX-License-Identifier: Apache-2.0
//! Manifests as projects publish them.

/// A pod network with its controller. The next version has a StatefulSet in place of a budget.
pub fn mesh(version: &str) -> String {
    let differs = if version == "1.0.0" {
        "apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: controller, namespace: mesh}
spec: {maxUnavailable: 1, selector: {matchLabels: {app: controller}}}"
    } else {
        "apiVersion: apps/v1
kind: StatefulSet
metadata: {name: store, namespace: mesh}
spec:
  serviceName: controller
  replicas: 2
  selector: {matchLabels: {app: store}}
  template:
    metadata: {labels: {app: store}}
    spec:
      containers: [{name: store, image: 'registry.example.com/mesh/store:v1'}]"
    };
    let fields: String = (0..500)
        .map(|n| format!("              field{n}: {{type: string, description: 'Field {n}.'}}\n"))
        .collect();
    format!(
        "apiVersion: v1
kind: Namespace
metadata: {{name: mesh}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: routes.mesh.example.com}}
spec:
  group: mesh.example.com
  scope: Cluster
  names: {{kind: Route, plural: routes, singular: route, listKind: RouteList}}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
{fields}---
apiVersion: v1
kind: ServiceAccount
metadata: {{name: controller, namespace: mesh}}
---
apiVersion: v1
kind: ServiceAccount
metadata: {{name: agent, namespace: mesh}}
---
apiVersion: v1
kind: ConfigMap
metadata: {{name: mesh, namespace: mesh}}
data:
  agent.conf: |
    # {{{{ braces }}}} are the agent's own
    mtu: 1450
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {{name: mesh}}
rules:
- {{apiGroups: [''], resources: [nodes, pods, services], verbs: [get, list, watch]}}
- {{apiGroups: [mesh.example.com], resources: [routes], verbs: ['*']}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {{name: mesh}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: mesh}}
subjects:
- {{kind: ServiceAccount, name: controller, namespace: mesh}}
- {{kind: ServiceAccount, name: agent, namespace: mesh}}
---
apiVersion: v1
kind: Service
metadata: {{name: controller, namespace: mesh}}
spec: {{selector: {{app: controller}}, ports: [{{port: 443, targetPort: 8443}}]}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: controller, namespace: mesh}}
spec:
  replicas: 1
  selector: {{matchLabels: {{app: controller}}}}
  template:
    metadata: {{labels: {{app: controller}}}}
    spec:
      serviceAccountName: controller
      containers:
      - {{name: controller, image: 'registry.example.com/mesh/controller:v{version}', ports: [{{containerPort: 8443}}]}}
      volumes: [{{name: config, configMap: {{name: mesh}}}}]
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {{name: agent, namespace: mesh}}
spec:
  selector: {{matchLabels: {{app: agent}}}}
  template:
    metadata: {{labels: {{app: agent}}}}
    spec:
      serviceAccountName: agent
      hostNetwork: true
      tolerations: [{{operator: Exists}}]
      initContainers: [{{name: install, image: 'registry.example.com/mesh/agent:v{version}'}}]
      containers: [{{name: agent, image: 'registry.example.com/mesh/agent:v{version}'}}]
---
apiVersion: batch/v1
kind: CronJob
metadata: {{name: sweep, namespace: mesh}}
spec:
  schedule: '0 3 * * *'
  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: Never
          containers: [{{name: sweep, image: 'registry.example.com/mesh/agent:v{version}'}}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {{name: mesh}}
webhooks:
- name: routes.mesh.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Ignore
  rules: [{{apiGroups: [mesh.example.com], apiVersions: [v1], operations: [CREATE], resources: [routes], scope: '*'}}]
  clientConfig: {{service: {{name: controller, namespace: mesh, path: /routes}}}}
---
{differs}
"
    )
}
