{{- define "skyrocket.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Of a part: dict "root" $ "part" "broker" ["set" "broker-a"]. */}}
{{- define "skyrocket.selector" -}}
app.kubernetes.io/name: {{ .root.Chart.Name }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .part }}
{{- with .set }}
skyrocket/set: {{ . }}
{{- end }}
{{- end -}}

{{- define "skyrocket.labels" -}}
{{ include "skyrocket.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ .root.Chart.Name }}-{{ .root.Chart.Version }}
{{- end -}}

{{- define "skyrocket.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "skyrocket.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "skyrocket.image" -}}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) -}}
{{- end -}}

{{/* Settings as lines of a .conf file. YAML's large numbers are floats to Helm: they must not become 1.07e+09. */}}
{{- define "skyrocket.settings" -}}
{{- range $key, $value := . }}
{{ $key }}={{ if kindIs "float64" $value }}{{ if eq (floor $value) $value }}{{ int64 $value }}{{ else }}{{ $value }}{{ end }}{{ else }}{{ toString $value | replace "\\" "\\\\" }}{{ end }}
{{- end }}
{{- end -}}

{{/* The name of pod $i of a part: dict "root" $ "part" "namesrv" "index" 0. */}}
{{- define "skyrocket.host" -}}
{{- $name := printf "%s-%s" (include "skyrocket.fullname" .root) .part -}}
{{- printf "%s-%d.%s.%s.svc.%s" $name (int .index) $name .root.Release.Namespace .root.Values.clusterDomain -}}
{{- end -}}

{{- define "skyrocket.nameServers" -}}
{{- $known := list -}}
{{- range $i := until (int .Values.namesrv.replicas) -}}
{{- $known = append $known (printf "%s:9876" (include "skyrocket.host" (dict "root" $ "part" "namesrv" "index" $i))) -}}
{{- end -}}
{{- join ";" $known -}}
{{- end -}}

{{/* Controllers; "ids" true: with the id of each in front, as they know each other. */}}
{{- define "skyrocket.controllers" -}}
{{- $known := list -}}
{{- $root := .root -}}
{{- $ids := .ids -}}
{{- range $i := until (int $root.Values.controller.replicas) -}}
{{- $host := printf "%s:9878" (include "skyrocket.host" (dict "root" $root "part" "controller" "index" $i)) -}}
{{- $known = append $known (ternary (printf "n%d-%s" $i $host) $host $ids) -}}
{{- end -}}
{{- join ";" $known -}}
{{- end -}}

{{/* What all pods have: dict "root" $ "part" "broker" ["set" …]. */}}
{{- define "skyrocket.podBasics" -}}
{{- $values := index .root.Values .part -}}
serviceAccountName: {{ include "skyrocket.serviceAccountName" .root }}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  {{- toYaml .root.Values.podSecurityContext | nindent 2 }}
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
affinity:
{{- if $values.affinity }}
  {{- toYaml $values.affinity | nindent 2 }}
{{- else }}
  podAntiAffinity:
    preferredDuringSchedulingIgnoredDuringExecution:
      - weight: 100
        podAffinityTerm:
          topologyKey: kubernetes.io/hostname
          labelSelector:
            matchLabels:
              {{- include "skyrocket.selector" . | nindent 14 }}
{{- end }}
{{- end -}}

{{- define "skyrocket.containerBasics" -}}
{{- $values := index .root.Values .part -}}
image: {{ include "skyrocket.image" .root | quote }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
securityContext:
  {{- toYaml .root.Values.securityContext | nindent 2 }}
resources:
  {{- toYaml $values.resources | nindent 2 }}
{{- end -}}

{{- define "skyrocket.env" -}}
- name: HOME
  value: /tmp
- name: SKYROCKET_LOG_FORMAT
  value: {{ .root.Values.log.format }}
- name: SKYROCKET_LOG_LEVEL
  value: {{ .root.Values.log.level }}
- name: POD_NAME
  valueFrom:
    fieldRef:
      fieldPath: metadata.name
{{- with (index .root.Values .part).extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Alive and ready, over HTTP at port 5557; "startup" is how many seconds a start may take. */}}
{{- define "skyrocket.probes" -}}
startupProbe:
  httpGet: {path: /health, port: http}
  periodSeconds: 5
  timeoutSeconds: 3
  failureThreshold: {{ max 1 (div (int .startup) 5) }}
livenessProbe:
  httpGet: {path: /health, port: http}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
readinessProbe:
  httpGet: {path: /ready, port: http}
  periodSeconds: 5
  timeoutSeconds: 3
  failureThreshold: 2
{{- end -}}

{{/* Volumes, and the claims of a StatefulSet: dict "root" $ "part" … "claim" "store". */}}
{{- define "skyrocket.volumes" -}}
{{- $values := index .root.Values .part -}}
- name: tmp
  emptyDir: {}
{{- if not $values.persistence.enabled }}
- name: {{ .claim }}
  emptyDir: {}
{{- end }}
{{- with $values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "skyrocket.claims" -}}
{{- $values := index .root.Values .part -}}
{{- if $values.persistence.enabled }}
volumeClaimTemplates:
  - metadata:
      name: {{ .claim }}
      labels:
        {{- include "skyrocket.selector" . | nindent 8 }}
    spec:
      accessModes: [ReadWriteOnce]
      {{- with $values.persistence.storageClass }}
      storageClassName: {{ . }}
      {{- end }}
      resources:
        requests:
          storage: {{ $values.persistence.size }}
{{- end }}
{{- end -}}

{{/* dict "root" $ "part" … ["set" …] "name" …  "replicas" n */}}
{{- define "skyrocket.disruption" -}}
{{- if and .root.Values.podDisruptionBudget.enabled (gt (int .replicas) 1) }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ .name }}
  labels:
    {{- include "skyrocket.labels" . | nindent 4 }}
spec:
  maxUnavailable: 1
  selector:
    matchLabels:
      {{- include "skyrocket.selector" . | nindent 6 }}
{{- end }}
{{- end -}}
