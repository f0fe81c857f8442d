{{- define "gpupod.labels" -}}
app.kubernetes.io/name: gpupod-operator
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "gpupod.image" -}}
{{ .Values.image.repository }}{{ if .Values.image.digest }}@{{ .Values.image.digest }}{{ else }}:{{ .Values.image.tag }}{{ end }}
{{- end }}

{{- define "gpupod.args" -}}
{{- $args := list "run" -}}
{{- range $flag, $value := dict
      "--runpod-api" .Values.settings.runpodApi
      "--hub-endpoint" .Values.settings.hubEndpoint
      "--instance-id" .Values.settings.instanceId
      "--observe-every" .Values.settings.observeEvery
      "--visit-every" .Values.settings.visitEvery
      "--create-settle" .Values.settings.createSettle
      "--timer-grace" .Values.settings.timerGrace
      "--max-hourly-account" .Values.settings.maxHourlyAccount
      "--max-hourly-namespace" .Values.settings.maxHourlyNamespace
      "--ssh-identity-file" .Values.settings.sshIdentityFile
      "--ssh-known-hosts-file" .Values.settings.sshKnownHostsFile
      "--log-format" .Values.settings.logFormat
      "--log-level" .Values.settings.logLevel -}}
{{- if $value }}{{ $args = concat $args (list $flag (toString $value)) }}{{ end -}}
{{- end -}}
{{- if not (kindIs "invalid" .Values.settings.maxPods) }}{{ $args = concat $args (list "--max-pods" (toString (int .Values.settings.maxPods))) }}{{ end -}}
{{- if .Values.settings.reapOrphans }}{{ $args = append $args "--reap-orphans" }}{{ end -}}
{{- range .Values.settings.watchNamespaces }}{{ $args = concat $args (list "--watch-namespace" .) }}{{ end -}}
{{- toJson $args -}}
{{- end }}

{{- define "gpupod.servedRules" -}}
# Our own kinds. `patch` is for finalizers only: the controller never writes a spec, and never creates or deletes.
- apiGroups: ["gpupod.dev"]
  resources: ["gpupods", "sweepcells"]
  verbs: ["get", "list", "watch", "patch"]
- apiGroups: ["gpupod.dev"]
  resources: ["gpupods/status", "sweepcells/status"]
  verbs: ["patch"]
# Secrets that a spec names, read one by one. No list and no watch: the operator cannot search for secrets.
- apiGroups: [""]
  resources: ["secrets"]
  verbs: ["get"]
# pods-conf and captured logs, in the namespaces of the GpuPods. `create` is asked for where an apply makes the object.
- apiGroups: [""]
  resources: ["configmaps"]
  verbs: ["get", "create", "patch", "delete"]
# Is the namespace terminating? And the uid of kube-system, which is the operator's instance id.
- apiGroups: [""]
  resources: ["namespaces"]
  verbs: ["get"]
- apiGroups: ["events.k8s.io"]
  resources: ["events"]
  verbs: ["create"]
{{- end }}
