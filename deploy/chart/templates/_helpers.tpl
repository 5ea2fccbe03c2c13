{{- /* The labels of Helm, which every object gets besides its own. */ -}}
{{- define "vdo.helmLabels" -}}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- /* The labels of the hand-written objects. */ -}}
{{- define "vdo.labels" -}}
app.kubernetes.io/name: vdo-operator
{{ include "vdo.helmLabels" . }}
{{- end -}}

{{- /* The image: a digest wins over the tag, and without both it is the chart's version. */ -}}
{{- define "vdo.image" -}}
{{- $image := .Values.image -}}
{{- if $image.digest -}}
{{ $image.repository }}@{{ $image.digest }}
{{- else -}}
{{ $image.repository }}:{{ $image.tag | default (printf "v%s" .Chart.AppVersion) }}
{{- end -}}
{{- end -}}

{{- /*
The objects of a file in files/, which are copies of generated files: in the namespace of the release and with Helm's labels.
Arguments: root, file, keep (whether `helm uninstall` leaves them).
*/ -}}
{{- define "vdo.objects" -}}
{{- $root := .root -}}
{{- $file := .file -}}
{{- $keep := .keep -}}
{{- $labels := fromYaml (include "vdo.helmLabels" $root) -}}
{{- $text := $root.Files.Get $file | replace "vmware-system-vdo" $root.Release.Namespace -}}
{{- range $document := splitList "\n---\n" (printf "\n%s" $text) -}}
{{- $object := fromYaml $document -}}
{{- if hasKey $object "Error" -}}
{{- fail (printf "%s: %s" $file $object.Error) -}}
{{- end -}}
{{- if $object.kind -}}
{{- $metadata := $object.metadata -}}
{{- $_ := set $metadata "labels" (merge (dict) $labels (default (dict) $metadata.labels) (default (dict) $.labels)) -}}
{{- if $keep -}}
{{- $_ := set $metadata "annotations" (merge (dict "helm.sh/resource-policy" "keep") (default (dict) $metadata.annotations)) -}}
{{- end }}
---
{{ toYaml $object }}
{{- end -}}
{{- end -}}
{{- end -}}
