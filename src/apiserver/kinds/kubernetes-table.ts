// Written by test/peers/client-go/kinds.go from Kubernetes' own types: see kubernetes.ts, which reads it.
export const TABLE: string = `v1 Endpoints endpoints - ep - Endpoints
v1 LimitRange limitranges - limits - LimitRange
v1 Node nodes cs no - Node
v1 PersistentVolume persistentvolumes cs pv - PersistentVolume
v1 PersistentVolumeClaim persistentvolumeclaims s pvc - PersistentVolumeClaim
v1 Pod pods sg po all Pod
v1 PodTemplate podtemplates g - - PodTemplate
v1 ReplicationController replicationcontrollers srg rc all ReplicationController
v1 ResourceQuota resourcequotas s quota - ResourceQuota
v1 Service services s svc all Service
apps/v1 ControllerRevision controllerrevisions - - - ControllerRevision
apps/v1 DaemonSet daemonsets sg ds all DaemonSet
apps/v1 Deployment deployments srg deploy all Deployment
apps/v1 ReplicaSet replicasets srg rs all ReplicaSet
apps/v1 StatefulSet statefulsets srg sts all StatefulSet
autoscaling/v1 HorizontalPodAutoscaler horizontalpodautoscalers sg hpa all HorizontalPodAutoscaler
autoscaling/v2 HorizontalPodAutoscaler horizontalpodautoscalers sg hpa all autoscaling.v2.HorizontalPodAutoscaler
batch/v1 CronJob cronjobs sg cj all CronJob
batch/v1 Job jobs sg - all Job
discovery.k8s.io/v1 EndpointSlice endpointslices g - - EndpointSlice
networking.k8s.io/v1 IPAddress ipaddresses c ip - IPAddress
networking.k8s.io/v1 Ingress ingresses sg ing - Ingress
networking.k8s.io/v1 IngressClass ingressclasses cg - - IngressClass
networking.k8s.io/v1 NetworkPolicy networkpolicies g netpol - NetworkPolicy
networking.k8s.io/v1 ServiceCIDR servicecidrs cs - - ServiceCIDR
node.k8s.io/v1 RuntimeClass runtimeclasses c - - RuntimeClass
policy/v1 PodDisruptionBudget poddisruptionbudgets sg pdb - PodDisruptionBudget
rbac.authorization.k8s.io/v1 ClusterRole clusterroles c - - ClusterRole
rbac.authorization.k8s.io/v1 ClusterRoleBinding clusterrolebindings c - - ClusterRoleBinding
rbac.authorization.k8s.io/v1 Role roles - - - Role
rbac.authorization.k8s.io/v1 RoleBinding rolebindings - - - RoleBinding
scheduling.k8s.io/v1 PriorityClass priorityclasses cg pc - PriorityClass
storage.k8s.io/v1 CSIDriver csidrivers c - - CSIDriver
storage.k8s.io/v1 CSINode csinodes cs - - CSINode
storage.k8s.io/v1 CSIStorageCapacity csistoragecapacities - - - CSIStorageCapacity
storage.k8s.io/v1 StorageClass storageclasses c sc - StorageClass
storage.k8s.io/v1 VolumeAttachment volumeattachments cs - - VolumeAttachment
storage.k8s.io/v1 VolumeAttributesClass volumeattributesclasses c vac - VolumeAttributesClass

ObjectReference % kind:1s namespace:2s name:3s uid:4s apiVersion:5s resourceVersion:6s fieldPath:7s
EndpointAddress % ip:1!s hostname:3s nodeName:4?s targetRef:2?ObjectReference
EndpointPort % name:1s port:2!i protocol:3s appProtocol:4?s
EndpointSubset addresses:1[]EndpointAddress notReadyAddresses:2[]EndpointAddress ports:3[]EndpointPort
Endpoints metadata:1ObjectMeta subsets:2[]EndpointSubset
LimitRangeItem type:1!s max:2{}Quantity min:3{}Quantity default:4{}Quantity defaultRequest:5{}Quantity maxLimitRequestRatio:6{}Quantity
LimitRangeSpec limits:1[]!LimitRangeItem
LimitRange metadata:1ObjectMeta spec:2LimitRangeSpec
Taint key:1!s value:2s effect:3!s timeAdded:4?t
ConfigMapNodeConfigSource namespace:1!s name:2!s uid:3s resourceVersion:4s kubeletConfigKey:5!s
NodeConfigSource configMap:2?ConfigMapNodeConfigSource
NodePodPreemptionPolicy disableResizePreemption:1[]s@
NodeSpec podCIDR:1s podCIDRs:7[]s@~ providerID:3s unschedulable:4o taints:5[]Taint configSource:6?NodeConfigSource externalID:2s podPreemptionPolicy:8?NodePodPreemptionPolicy
NodeCondition type:1!s status:2!s lastHeartbeatTime:3!t lastTransitionTime:4!t reason:5s message:6s
NodeAddress type:1!s address:2!s
DaemonEndpoint Port:1!i
NodeDaemonEndpoints kubeletEndpoint:1DaemonEndpoint
NodeSwapStatus capacity:1?l
NodeSystemInfo machineID:1!s systemUUID:2!s bootID:3!s kernelVersion:4!s osImage:5!s containerRuntimeVersion:6!s kubeletVersion:7!s kubeProxyVersion:8!s operatingSystem:9!s architecture:10!s swap:11?NodeSwapStatus runningInUserNamespace:12?o
ContainerImage names:1[]!s sizeBytes:2l
AttachedVolume name:1!s devicePath:2!s
NodeConfigStatus assigned:1?NodeConfigSource active:2?NodeConfigSource lastKnownGood:3?NodeConfigSource error:4s
NodeRuntimeHandlerFeatures recursiveReadOnlyMounts:1?o userNamespaces:2?o
NodeRuntimeHandler name:1!s features:2?NodeRuntimeHandlerFeatures
NodeFeatures supplementalGroupsPolicy:1?o
NodeStatus capacity:1{}Quantity allocatable:2{}Quantity phase:3s conditions:4[]NodeCondition@type~type addresses:5[]NodeAddress@type~type daemonEndpoints:6NodeDaemonEndpoints nodeInfo:7NodeSystemInfo images:8[]ContainerImage volumesInUse:9[]s volumesAttached:10[]AttachedVolume config:11?NodeConfigStatus runtimeHandlers:12[]NodeRuntimeHandler features:13?NodeFeatures declaredFeatures:14[]s
Node metadata:1ObjectMeta spec:2NodeSpec status:3NodeStatus
GCEPersistentDiskVolumeSource pdName:1!s fsType:2s partition:3i readOnly:4o
AWSElasticBlockStoreVolumeSource volumeID:1!s fsType:2s partition:3i readOnly:4o
HostPathVolumeSource path:1!s type:2?s
GlusterfsPersistentVolumeSource endpoints:1!s path:2!s readOnly:3o endpointsNamespace:4?s
NFSVolumeSource server:1!s path:2!s readOnly:3o
SecretReference % name:1s namespace:2s
RBDPersistentVolumeSource monitors:1[]!s image:2!s fsType:3s pool:4s=rbd user:5s=admin keyring:6s=/etc/ceph/keyring secretRef:7?SecretReference readOnly:8o
ISCSIPersistentVolumeSource targetPortal:1!s iqn:2!s lun:3!i iscsiInterface:4s=default fsType:5s readOnly:6o portals:7[]s chapAuthDiscovery:8o chapAuthSession:11o secretRef:10?SecretReference initiatorName:12?s
CinderPersistentVolumeSource volumeID:1!s fsType:2s readOnly:3o secretRef:4?SecretReference
CephFSPersistentVolumeSource monitors:1[]!s path:2s user:3s secretFile:4s secretRef:5?SecretReference readOnly:6o
FCVolumeSource targetWWNs:1[]s lun:2?i fsType:3s readOnly:4o wwids:5[]s
FlockerVolumeSource datasetName:1s datasetUUID:2s
FlexPersistentVolumeSource driver:1!s fsType:2s secretRef:3?SecretReference readOnly:4o options:5{}s
AzureFilePersistentVolumeSource secretName:1!s shareName:2!s readOnly:3o secretNamespace:4?!s
VsphereVirtualDiskVolumeSource volumePath:1!s fsType:2s storagePolicyName:3s storagePolicyID:4s
QuobyteVolumeSource registry:1!s volume:2!s readOnly:3o user:4s group:5s tenant:6s
AzureDiskVolumeSource diskName:1!s diskURI:2!s cachingMode:3?s=ReadWrite fsType:4?s=ext4 readOnly:5?o kind:6?s=Shared
PhotonPersistentDiskVolumeSource pdID:1!s fsType:2s
PortworxVolumeSource volumeID:1!s fsType:2s readOnly:3o
ScaleIOPersistentVolumeSource gateway:1!s system:2!s secretRef:3?!SecretReference sslEnabled:4o protectionDomain:5s storagePool:6s storageMode:7s=ThinProvisioned volumeName:8s fsType:9s=xfs readOnly:10o
LocalVolumeSource path:1!s fsType:2?s
StorageOSPersistentVolumeSource volumeName:1s volumeNamespace:2s fsType:3s readOnly:4o secretRef:5?ObjectReference
CSIPersistentVolumeSource driver:1!s volumeHandle:2!s readOnly:3o fsType:4s volumeAttributes:5{}s controllerPublishSecretRef:6?SecretReference nodeStageSecretRef:7?SecretReference nodePublishSecretRef:8?SecretReference controllerExpandSecretRef:9?SecretReference nodeExpandSecretRef:10?SecretReference
PersistentVolumeSource gcePersistentDisk:1?GCEPersistentDiskVolumeSource awsElasticBlockStore:2?AWSElasticBlockStoreVolumeSource hostPath:3?HostPathVolumeSource glusterfs:4?GlusterfsPersistentVolumeSource nfs:5?NFSVolumeSource rbd:6?RBDPersistentVolumeSource iscsi:7?ISCSIPersistentVolumeSource cinder:8?CinderPersistentVolumeSource cephfs:9?CephFSPersistentVolumeSource fc:10?FCVolumeSource flocker:11?FlockerVolumeSource flexVolume:12?FlexPersistentVolumeSource azureFile:13?AzureFilePersistentVolumeSource vsphereVolume:14?VsphereVirtualDiskVolumeSource quobyte:15?QuobyteVolumeSource azureDisk:16?AzureDiskVolumeSource photonPersistentDisk:17?PhotonPersistentDiskVolumeSource portworxVolume:18?PortworxVolumeSource scaleIO:19?ScaleIOPersistentVolumeSource local:20?LocalVolumeSource storageos:21?StorageOSPersistentVolumeSource csi:22?CSIPersistentVolumeSource
NodeSelectorRequirement key:1!s operator:2!s values:3[]s
NodeSelectorTerm % matchExpressions:1[]NodeSelectorRequirement matchFields:2[]NodeSelectorRequirement
NodeSelector % nodeSelectorTerms:1[]!NodeSelectorTerm
VolumeNodeAffinity required:1?NodeSelector
PersistentVolumeSpec capacity:1{}Quantity :2^PersistentVolumeSource accessModes:3[]s claimRef:4?ObjectReference+ persistentVolumeReclaimPolicy:5s storageClassName:6s mountOptions:7[]s volumeMode:8?s nodeAffinity:9?VolumeNodeAffinity volumeAttributesClassName:10?s
PersistentVolumeStatus phase:1s message:2s reason:3s lastPhaseTransitionTime:4?t
PersistentVolume metadata:1ObjectMeta spec:2PersistentVolumeSpec status:3PersistentVolumeStatus
LabelSelectorRequirement key:1!s operator:2!s values:3[]s
LabelSelector % matchLabels:1{}s matchExpressions:2[]LabelSelectorRequirement
VolumeResourceRequirements limits:1{}Quantity requests:2{}Quantity
TypedLocalObjectReference % apiGroup:1?!s kind:2!s name:3!s
TypedObjectReference apiGroup:1?!s kind:2!s name:3!s namespace:4?s
PersistentVolumeClaimSpec accessModes:1[]s selector:4?LabelSelector resources:2VolumeResourceRequirements volumeName:3s storageClassName:5?s volumeMode:6?s dataSource:7?TypedLocalObjectReference dataSourceRef:8?TypedObjectReference volumeAttributesClassName:9?s
PersistentVolumeClaimCondition type:1!s status:2!s lastProbeTime:3!t lastTransitionTime:4!t reason:5s message:6s
ModifyVolumeStatus targetVolumeAttributesClassName:1s status:2!s
VolumeHealthCondition status:1!s reason:2!s message:3s
VolumeHealthStatus healthConditions:1[]VolumeHealthCondition@status,reason~status lastTransitionTime:2!t
PersistentVolumeClaimStatus phase:1s accessModes:2[]s capacity:3{}Quantity conditions:4[]PersistentVolumeClaimCondition@type~type allocatedResources:5{}Quantity allocatedResourceStatuses:7{}s currentVolumeAttributesClassName:8?s modifyVolumeStatus:9?ModifyVolumeStatus healthStatus:10?VolumeHealthStatus
PersistentVolumeClaim metadata:1ObjectMeta spec:2PersistentVolumeClaimSpec status:3PersistentVolumeClaimStatus
EmptyDirVolumeSource medium:1s sizeLimit:2?Quantity mode:3?i
GitRepoVolumeSource repository:1!s revision:2s directory:3s
KeyToPath key:1!s path:2!s mode:3?i user:4?l
SecretVolumeSource secretName:1s items:2[]KeyToPath defaultMode:3?i optional:4?o defaultUser:5?l
LocalObjectReference % name:1s
ISCSIVolumeSource targetPortal:1!s iqn:2!s lun:3!i iscsiInterface:4s=default fsType:5s readOnly:6o portals:7[]s chapAuthDiscovery:8o chapAuthSession:11o secretRef:10?LocalObjectReference initiatorName:12?s
GlusterfsVolumeSource endpoints:1!s path:2!s readOnly:3o
PersistentVolumeClaimVolumeSource claimName:1!s readOnly:2o
RBDVolumeSource monitors:1[]!s image:2!s fsType:3s pool:4s=rbd user:5s=admin keyring:6s=/etc/ceph/keyring secretRef:7?LocalObjectReference readOnly:8o
FlexVolumeSource driver:1!s fsType:2s secretRef:3?LocalObjectReference readOnly:4o options:5{}s
CinderVolumeSource volumeID:1!s fsType:2s readOnly:3o secretRef:4?LocalObjectReference
CephFSVolumeSource monitors:1[]!s path:2s user:3s secretFile:4s secretRef:5?LocalObjectReference readOnly:6o
ObjectFieldSelector % apiVersion:1s fieldPath:2!s
ResourceFieldSelector % containerName:1s resource:2!s divisor:3!Quantity
DownwardAPIVolumeFile path:1!s fieldRef:2?ObjectFieldSelector resourceFieldRef:3?ResourceFieldSelector mode:4?i user:5?l
DownwardAPIVolumeSource items:1[]DownwardAPIVolumeFile defaultMode:2?i defaultUser:3?l
AzureFileVolumeSource secretName:1!s shareName:2!s readOnly:3o
ConfigMapVolumeSource :1^LocalObjectReference items:2[]KeyToPath defaultMode:3?i optional:4?o defaultUser:5?l
SecretProjection :1^LocalObjectReference items:2[]KeyToPath optional:4?o
DownwardAPIProjection items:1[]DownwardAPIVolumeFile
ConfigMapProjection :1^LocalObjectReference items:2[]KeyToPath optional:4?o
ServiceAccountTokenProjection audience:1s expirationSeconds:2?l path:3!s user:4?l
ClusterTrustBundleProjection name:1?s signerName:2?s labelSelector:3?LabelSelector optional:5?o path:4!s user:6?l
PodCertificateProjection signerName:1s keyType:2s maxExpirationSeconds:3?i credentialBundlePath:4s keyPath:5s certificateChainPath:6s userAnnotations:7{}s user:8?l
VolumeProjection secret:1?SecretProjection downwardAPI:2?DownwardAPIProjection configMap:3?ConfigMapProjection serviceAccountToken:4?ServiceAccountTokenProjection clusterTrustBundle:5?ClusterTrustBundleProjection podCertificate:6?PodCertificateProjection
ProjectedVolumeSource sources:1[]!VolumeProjection defaultMode:2?i defaultUser:3?l
ScaleIOVolumeSource gateway:1!s system:2!s secretRef:3?!LocalObjectReference sslEnabled:4o protectionDomain:5s storagePool:6s storageMode:7s=ThinProvisioned volumeName:8s fsType:9s=xfs readOnly:10o
StorageOSVolumeSource volumeName:1s volumeNamespace:2s fsType:3s readOnly:4o secretRef:5?LocalObjectReference
CSIVolumeSource driver:1!s readOnly:2?o fsType:3?s volumeAttributes:4{}s nodePublishSecretRef:5?LocalObjectReference
PersistentVolumeClaimTemplate metadata:1ObjectMeta spec:2PersistentVolumeClaimSpec
EphemeralVolumeSource volumeClaimTemplate:1?PersistentVolumeClaimTemplate
ImageVolumeSource reference:1s pullPolicy:2s
VolumeSource hostPath:1?HostPathVolumeSource emptyDir:2?EmptyDirVolumeSource gcePersistentDisk:3?GCEPersistentDiskVolumeSource awsElasticBlockStore:4?AWSElasticBlockStoreVolumeSource gitRepo:5?GitRepoVolumeSource secret:6?SecretVolumeSource nfs:7?NFSVolumeSource iscsi:8?ISCSIVolumeSource glusterfs:9?GlusterfsVolumeSource persistentVolumeClaim:10?PersistentVolumeClaimVolumeSource rbd:11?RBDVolumeSource flexVolume:12?FlexVolumeSource cinder:13?CinderVolumeSource cephfs:14?CephFSVolumeSource flocker:15?FlockerVolumeSource downwardAPI:16?DownwardAPIVolumeSource fc:17?FCVolumeSource azureFile:18?AzureFileVolumeSource configMap:19?ConfigMapVolumeSource vsphereVolume:20?VsphereVirtualDiskVolumeSource quobyte:21?QuobyteVolumeSource azureDisk:22?AzureDiskVolumeSource photonPersistentDisk:23?PhotonPersistentDiskVolumeSource projected:26?ProjectedVolumeSource portworxVolume:24?PortworxVolumeSource scaleIO:25?ScaleIOVolumeSource storageos:27?StorageOSVolumeSource csi:28?CSIVolumeSource ephemeral:29?EphemeralVolumeSource image:30?ImageVolumeSource
Volume name:1!s :2^VolumeSource
ContainerPort name:1s hostPort:2i containerPort:3!i protocol:4s=TCP hostIP:5s
ConfigMapEnvSource :1^LocalObjectReference optional:2?o
SecretEnvSource :1^LocalObjectReference optional:2?o
EnvFromSource prefix:1s configMapRef:2?ConfigMapEnvSource secretRef:3?SecretEnvSource
ConfigMapKeySelector % :1^LocalObjectReference key:2!s optional:3?o
SecretKeySelector % :1^LocalObjectReference key:2!s optional:3?o
FileKeySelector % volumeName:1!s path:2!s key:3!s optional:4?o
EnvVarSource fieldRef:1?ObjectFieldSelector resourceFieldRef:2?ResourceFieldSelector configMapKeyRef:3?ConfigMapKeySelector secretKeyRef:4?SecretKeySelector fileKeyRef:5?FileKeySelector
EnvVar name:1!s value:2s valueFrom:3?EnvVarSource
ResourceClaim name:1!s request:2s
ResourceRequirements limits:1{}Quantity requests:2{}Quantity claims:3[]ResourceClaim@name
ContainerResizePolicy resourceName:1!s restartPolicy:2!s
ContainerRestartRuleOnExitCodes operator:1s values:2[]i@
ContainerRestartRule action:1s exitCodes:2?ContainerRestartRuleOnExitCodes
VolumeMount name:1!s readOnly:2o recursiveReadOnly:7?s mountPath:3!s subPath:4s mountPropagation:5?s subPathExpr:6s bindMountOptions:8[]s@
VolumeDevice name:1!s devicePath:2!s
ExecAction command:1[]s
HTTPHeader name:1!s value:2!s
HTTPGetAction path:1s port:2!IntOrString host:3s scheme:4s httpHeaders:5[]HTTPHeader protocol:6?s
TCPSocketAction port:1!IntOrString host:2s
GRPCAction port:1!i service:2?!s mode:3?s
ProbeHandler exec:1?ExecAction httpGet:2?HTTPGetAction tcpSocket:3?TCPSocketAction grpc:4?GRPCAction
Probe :1^ProbeHandler initialDelaySeconds:2i timeoutSeconds:3i periodSeconds:4i successThreshold:5i failureThreshold:6i terminationGracePeriodSeconds:7?l
SleepAction seconds:1!l
LifecycleHandler exec:1?ExecAction httpGet:2?HTTPGetAction tcpSocket:3?TCPSocketAction sleep:4?SleepAction
Lifecycle postStart:1?LifecycleHandler preStop:2?LifecycleHandler stopSignal:3?s
Capabilities add:1[]s drop:2[]s
SELinuxOptions user:1s role:2s type:3s level:4s
WindowsSecurityContextOptions gmsaCredentialSpecName:1?s gmsaCredentialSpec:2?s runAsUserName:3?s hostProcess:4?o
SeccompProfile type:1!s localhostProfile:2?s
AppArmorProfile type:1!s localhostProfile:2?s
SecurityContext capabilities:1?Capabilities privileged:2?o seLinuxOptions:3?SELinuxOptions windowsOptions:10?WindowsSecurityContextOptions runAsUser:4?l runAsGroup:8?l runAsNonRoot:5?o readOnlyRootFilesystem:6?o allowPrivilegeEscalation:7?o procMount:9?s seccompProfile:11?SeccompProfile appArmorProfile:12?AppArmorProfile
Container name:1!s image:2s command:3[]s args:4[]s workingDir:5s ports:6[]ContainerPort@containerPort,protocol~containerPort envFrom:19[]EnvFromSource env:7[]EnvVar@name~name resources:8ResourceRequirements resizePolicy:23[]ContainerResizePolicy restartPolicy:24?s restartPolicyRules:25[]ContainerRestartRule volumeMounts:9[]VolumeMount@mountPath~mountPath volumeDevices:21[]VolumeDevice@devicePath~devicePath livenessProbe:10?Probe readinessProbe:11?Probe startupProbe:22?Probe lifecycle:12?Lifecycle terminationMessagePath:13s terminationMessagePolicy:20s imagePullPolicy:14s securityContext:15?SecurityContext stdin:16o stdinOnce:17o tty:18o
EphemeralContainerCommon name:1!s image:2s command:3[]s args:4[]s workingDir:5s ports:6[]ContainerPort@containerPort,protocol~containerPort envFrom:19[]EnvFromSource env:7[]EnvVar@name~name resources:8ResourceRequirements resizePolicy:23[]ContainerResizePolicy restartPolicy:24?s restartPolicyRules:25[]ContainerRestartRule volumeMounts:9[]VolumeMount@mountPath~mountPath volumeDevices:21[]VolumeDevice@devicePath~devicePath livenessProbe:10?Probe readinessProbe:11?Probe startupProbe:22?Probe lifecycle:12?Lifecycle terminationMessagePath:13s terminationMessagePolicy:20s imagePullPolicy:14s securityContext:15?SecurityContext stdin:16o stdinOnce:17o tty:18o
EphemeralContainer :1^EphemeralContainerCommon targetContainerName:2s
Sysctl name:1!s value:2!s
PodSecurityContext seLinuxOptions:1?SELinuxOptions windowsOptions:8?WindowsSecurityContextOptions runAsUser:2?l runAsGroup:6?l runAsNonRoot:3?o supplementalGroups:4[]l supplementalGroupsPolicy:12?s fsGroup:5?l sysctls:7[]Sysctl fsGroupChangePolicy:9?s seccompProfile:10?SeccompProfile appArmorProfile:11?AppArmorProfile seLinuxChangePolicy:13?s
PreferredSchedulingTerm weight:1!i preference:2NodeSelectorTerm
NodeAffinity requiredDuringSchedulingIgnoredDuringExecution:1?NodeSelector preferredDuringSchedulingIgnoredDuringExecution:2[]PreferredSchedulingTerm
PodAffinityTerm labelSelector:1?LabelSelector namespaces:2[]s topologyKey:3!s namespaceSelector:4?LabelSelector matchLabelKeys:5[]s mismatchLabelKeys:6[]s
WeightedPodAffinityTerm weight:1!i podAffinityTerm:2PodAffinityTerm
PodAffinity requiredDuringSchedulingIgnoredDuringExecution:1[]PodAffinityTerm preferredDuringSchedulingIgnoredDuringExecution:2[]WeightedPodAffinityTerm
PodAntiAffinity requiredDuringSchedulingIgnoredDuringExecution:1[]PodAffinityTerm preferredDuringSchedulingIgnoredDuringExecution:2[]WeightedPodAffinityTerm
Affinity nodeAffinity:1?NodeAffinity podAffinity:2?PodAffinity podAntiAffinity:3?PodAntiAffinity
Toleration key:1s operator:2s value:3s effect:4s tolerationSeconds:5?l
HostAlias ip:1!s hostnames:2[]s
PodDNSConfigOption name:1s value:2?s
PodDNSConfig nameservers:1[]s searches:2[]s options:3[]PodDNSConfigOption
PodReadinessGate conditionType:1!s
TopologySpreadConstraint maxSkew:1!i topologyKey:2!s whenUnsatisfiable:3!s labelSelector:4?LabelSelector minDomains:5?i nodeAffinityPolicy:6?s nodeTaintsPolicy:7?s matchLabelKeys:8[]s
PodOS name:1!s
PodSchedulingGate name:1!s
PodResourceClaim name:1!s resourceClaimName:3?s resourceClaimTemplateName:4?s
PodSchedulingGroup podGroupName:1?s
EvictionResponder % name:1!s priority:2?!i
PodSpec volumes:1[]Volume@name~name initContainers:20[]Container@name~name containers:2[]!Container@name~name ephemeralContainers:34[]EphemeralContainer@name~name restartPolicy:3s terminationGracePeriodSeconds:4?l activeDeadlineSeconds:5?l dnsPolicy:6s nodeSelector:7{}s% serviceAccountName:8s serviceAccount:9s automountServiceAccountToken:21?o nodeName:10s hostNetwork:11o hostPID:12o hostIPC:13o shareProcessNamespace:27?o securityContext:14?PodSecurityContext imagePullSecrets:15[]LocalObjectReference@name~name hostname:16s subdomain:17s affinity:18?Affinity schedulerName:19s tolerations:22[]Toleration hostAliases:23[]HostAlias@ip~ip priorityClassName:24s priority:25?i dnsConfig:26?PodDNSConfig readinessGates:28[]PodReadinessGate runtimeClassName:29?s enableServiceLinks:30?o preemptionPolicy:31?s overhead:32{}Quantity topologySpreadConstraints:33[]TopologySpreadConstraint@topologyKey,whenUnsatisfiable~topologyKey setHostnameAsFQDN:35?o os:36?PodOS hostUsers:37?o schedulingGates:38[]PodSchedulingGate@name~name resourceClaims:39[]PodResourceClaim@name~name resources:40?ResourceRequirements hostnameOverride:41?s schedulingGroup:43?PodSchedulingGroup evictionResponders:44[]EvictionResponder@name~name
PodCondition type:1!s observedGeneration:7l status:2!s lastProbeTime:3!t lastTransitionTime:4!t reason:5s message:6s
HostIP ip:1!s
PodIP ip:1!s
ContainerStateWaiting reason:1s message:2s
ContainerStateRunning startedAt:1!t
ContainerStateTerminated exitCode:1!i signal:2i reason:3s message:4s startedAt:5!t finishedAt:6!t containerID:7s
ContainerState waiting:1?ContainerStateWaiting running:2?ContainerStateRunning terminated:3?ContainerStateTerminated
ImageVolumeStatus imageRef:1s
VolumeStatus image:1?ImageVolumeStatus
VolumeMountStatus name:1!s mountPath:2!s readOnly:3o recursiveReadOnly:4?s volumeStatus:5?VolumeStatus
LinuxContainerUser uid:1!l gid:2!l supplementalGroups:3[]l
ContainerUser linux:1?LinuxContainerUser
ResourceHealth resourceID:1!s health:2s message:6?s
ResourceStatus name:1!s resources:2[]ResourceHealth@resourceID
ContainerStatus name:1!s state:2ContainerState lastState:3ContainerState ready:4!o restartCount:5!i image:6!s imageID:7!s containerID:8s started:9?o allocatedResources:10{}Quantity resources:11?ResourceRequirements volumeMounts:12[]VolumeMountStatus@mountPath~mountPath user:13?ContainerUser allocatedResourcesStatus:14[]ResourceStatus@name~name stopSignal:15?s
PodResourceClaimStatus name:1!s resourceClaimName:2?s
ContainerExtendedResourceRequest containerName:1!s resourceName:2!s requestName:3!s
PodExtendedResourceClaimStatus requestMappings:1[]!ContainerExtendedResourceRequest resourceClaimName:2!s
NodeAllocatableMappedResources name:1!s quantity:2?!Quantity
NodeAllocatableOverheadResources name:1!s perPod:2?Quantity perContainer:3?Quantity
NodeAllocatableResourceClaimStatus resourceClaimName:1!s containers:2[]s@ mapping:4[]NodeAllocatableMappedResources@name~name overhead:5[]NodeAllocatableOverheadResources@name~name
PodVolumeHealth name:1!s healthConditions:2[]VolumeHealthCondition@status,reason~status lastTransitionTime:3!t
PodStatus observedGeneration:17l phase:1s conditions:2[]PodCondition@type~type message:3s reason:4s nominatedNodeName:11s hostIP:5s hostIPs:16[]HostIP~ip podIP:6s podIPs:12[]PodIP@ip~ip startTime:7?t initContainerStatuses:10[]ContainerStatus containerStatuses:8[]ContainerStatus qosClass:9s ephemeralContainerStatuses:13[]ContainerStatus resize:14s resourceClaimStatuses:15[]PodResourceClaimStatus@name~name extendedResourceClaimStatus:18?PodExtendedResourceClaimStatus allocatedResources:19{}Quantity resources:20?ResourceRequirements nodeAllocatableResourceClaimStatuses:21[]NodeAllocatableResourceClaimStatus@resourceClaimName~resourceClaimName volumeHealth:22[]PodVolumeHealth@name
Pod metadata:1ObjectMeta spec:2PodSpec status:3PodStatus
PodTemplateSpec metadata:1ObjectMeta spec:2PodSpec
PodTemplate metadata:1ObjectMeta template:2PodTemplateSpec
ReplicationControllerSpec replicas:1?i minReadySeconds:4i selector:2{}s% template:3?PodTemplateSpec
ReplicationControllerCondition type:1!s status:2!s lastTransitionTime:3!t reason:4s message:5s
ReplicationControllerStatus replicas:1!i fullyLabeledReplicas:2i readyReplicas:4i availableReplicas:5i observedGeneration:3l conditions:6[]ReplicationControllerCondition@type~type
ReplicationController metadata:1ObjectMeta spec:2ReplicationControllerSpec status:3ReplicationControllerStatus
ScopedResourceSelectorRequirement scopeName:1!s operator:2!s values:3[]s
ScopeSelector % matchExpressions:1[]ScopedResourceSelectorRequirement
ResourceQuotaSpec hard:1{}Quantity scopes:2[]s scopeSelector:3?ScopeSelector
ResourceQuotaStatus hard:1{}Quantity used:2{}Quantity
ResourceQuota metadata:1ObjectMeta spec:2ResourceQuotaSpec status:3ResourceQuotaStatus
ServicePort name:1s protocol:2s=TCP appProtocol:6?s port:3!i targetPort:4!IntOrString nodePort:5i
ClientIPConfig timeoutSeconds:1?i
SessionAffinityConfig clientIP:1?ClientIPConfig
ServiceSpec ports:1[]ServicePort@port,protocol~port selector:2{}s% clusterIP:3s clusterIPs:18[]s type:4s externalIPs:5[]s sessionAffinity:7s loadBalancerIP:8s loadBalancerSourceRanges:9[]s externalName:10s externalTrafficPolicy:11s healthCheckNodePort:12i publishNotReadyAddresses:13o sessionAffinityConfig:14?SessionAffinityConfig ipFamilies:19[]s ipFamilyPolicy:17?s allocateLoadBalancerNodePorts:20?o loadBalancerClass:21?s internalTrafficPolicy:22?s trafficDistribution:23?s
PortStatus port:1!i protocol:2!s error:3?s
LoadBalancerIngress ip:1s hostname:2s ipMode:3?s ports:4[]PortStatus
LoadBalancerStatus ingress:1[]LoadBalancerIngress
Condition type:1!s status:2!s observedGeneration:3l lastTransitionTime:4!t reason:5!s message:6!s
ServiceStatus loadBalancer:1LoadBalancerStatus conditions:2[]Condition@type~type
Service metadata:1ObjectMeta spec:2ServiceSpec status:3ServiceStatus
ControllerRevision metadata:1ObjectMeta data:2!j% revision:3!l
RollingUpdateDaemonSet maxUnavailable:1?IntOrString maxSurge:2?IntOrString
DaemonSetUpdateStrategy type:1s rollingUpdate:2?RollingUpdateDaemonSet
DaemonSetSpec selector:1?!LabelSelector template:2PodTemplateSpec updateStrategy:3DaemonSetUpdateStrategy minReadySeconds:4i revisionHistoryLimit:6?i
DaemonSetCondition type:1!s status:2!s lastTransitionTime:3!t reason:4s message:5s
DaemonSetStatus currentNumberScheduled:1!i numberMisscheduled:2!i desiredNumberScheduled:3!i numberReady:4!i observedGeneration:5l updatedNumberScheduled:6i numberAvailable:7i numberUnavailable:8i collisionCount:9?i conditions:10[]DaemonSetCondition@type~type
DaemonSet metadata:1ObjectMeta spec:2DaemonSetSpec status:3DaemonSetStatus
RollingUpdateDeployment maxUnavailable:1?IntOrString maxSurge:2?IntOrString
DeploymentStrategy type:1s rollingUpdate:2?RollingUpdateDeployment
DeploymentSpec replicas:1?i selector:2?!LabelSelector template:3PodTemplateSpec strategy:4DeploymentStrategy minReadySeconds:5i revisionHistoryLimit:6?i paused:7o progressDeadlineSeconds:9?i
DeploymentCondition type:1!s status:2!s lastUpdateTime:6!t lastTransitionTime:7!t reason:4s message:5s
DeploymentStatus observedGeneration:1l replicas:2i updatedReplicas:3i readyReplicas:7i availableReplicas:4i unavailableReplicas:5i terminatingReplicas:9?i conditions:6[]DeploymentCondition@type~type collisionCount:8?i
Deployment metadata:1ObjectMeta spec:2DeploymentSpec status:3DeploymentStatus
ReplicaSetSpec replicas:1?i minReadySeconds:4i selector:2?!LabelSelector template:3PodTemplateSpec
ReplicaSetCondition type:1!s status:2!s lastTransitionTime:3!t reason:4s message:5s
ReplicaSetStatus replicas:1!i fullyLabeledReplicas:2i readyReplicas:4i availableReplicas:5i terminatingReplicas:7?i observedGeneration:3l conditions:6[]ReplicaSetCondition@type~type
ReplicaSet metadata:1ObjectMeta spec:2ReplicaSetSpec status:3ReplicaSetStatus
RollingUpdateStatefulSetStrategy partition:1?i maxUnavailable:2?IntOrString
StatefulSetUpdateStrategy type:1s rollingUpdate:2?RollingUpdateStatefulSetStrategy
StatefulSetPersistentVolumeClaimRetentionPolicy whenDeleted:1s whenScaled:2s
StatefulSetOrdinals start:1!i
StatefulSetSpec replicas:1?i selector:2?!LabelSelector template:3PodTemplateSpec volumeClaimTemplates:4[]PersistentVolumeClaim serviceName:5!s podManagementPolicy:6s updateStrategy:7StatefulSetUpdateStrategy revisionHistoryLimit:8?i minReadySeconds:9i persistentVolumeClaimRetentionPolicy:10?StatefulSetPersistentVolumeClaimRetentionPolicy ordinals:11?StatefulSetOrdinals
StatefulSetCondition type:1!s status:2!s lastTransitionTime:3!t reason:4s message:5s
StatefulSetStatus observedGeneration:1l replicas:2!i readyReplicas:3i currentReplicas:4i updatedReplicas:5i currentRevision:6s updateRevision:7s collisionCount:9?i conditions:10[]StatefulSetCondition@type~type availableReplicas:11!i
StatefulSet metadata:1ObjectMeta spec:2StatefulSetSpec status:3StatefulSetStatus
CrossVersionObjectReference % kind:1!s name:2!s apiVersion:3s
HorizontalPodAutoscalerSpec scaleTargetRef:1CrossVersionObjectReference minReplicas:2?i maxReplicas:3!i targetCPUUtilizationPercentage:4?i
HorizontalPodAutoscalerStatus observedGeneration:1?l lastScaleTime:2?t currentReplicas:3!i desiredReplicas:4!i currentCPUUtilizationPercentage:5?i
HorizontalPodAutoscaler metadata:1ObjectMeta spec:2HorizontalPodAutoscalerSpec status:3HorizontalPodAutoscalerStatus
autoscaling.v2.CrossVersionObjectReference kind:1!s name:2!s apiVersion:3s
MetricTarget type:1!s value:2?Quantity averageValue:3?Quantity averageUtilization:4?i
MetricIdentifier name:1!s selector:2?LabelSelector
ObjectMetricSource describedObject:1autoscaling.v2.CrossVersionObjectReference target:2MetricTarget metric:3MetricIdentifier
PodsMetricSource metric:1MetricIdentifier target:2MetricTarget
ResourceMetricSource name:1!s target:2MetricTarget
ContainerResourceMetricSource name:1!s target:2MetricTarget container:3!s
ExternalMetricSource metric:1MetricIdentifier target:2MetricTarget
MetricSpec type:1!s object:2?ObjectMetricSource pods:3?PodsMetricSource resource:4?ResourceMetricSource containerResource:7?ContainerResourceMetricSource external:5?ExternalMetricSource
HPAScalingPolicy type:1!s value:2!i periodSeconds:3!i
HPAScalingRules stabilizationWindowSeconds:3?i selectPolicy:1?s policies:2[]HPAScalingPolicy tolerance:4?Quantity
HorizontalPodAutoscalerBehavior scaleUp:1?HPAScalingRules scaleDown:2?HPAScalingRules
autoscaling.v2.HorizontalPodAutoscalerSpec scaleTargetRef:1autoscaling.v2.CrossVersionObjectReference minReplicas:2?i maxReplicas:3!i metrics:4[]MetricSpec behavior:5?HorizontalPodAutoscalerBehavior
MetricValueStatus value:1?Quantity averageValue:2?Quantity averageUtilization:3?i
ObjectMetricStatus metric:1MetricIdentifier current:2MetricValueStatus describedObject:3autoscaling.v2.CrossVersionObjectReference
PodsMetricStatus metric:1MetricIdentifier current:2MetricValueStatus
ResourceMetricStatus name:1!s current:2MetricValueStatus
ContainerResourceMetricStatus name:1!s current:2MetricValueStatus container:3!s
ExternalMetricStatus metric:1MetricIdentifier current:2MetricValueStatus
MetricStatus type:1!s object:2?ObjectMetricStatus pods:3?PodsMetricStatus resource:4?ResourceMetricStatus containerResource:7?ContainerResourceMetricStatus external:5?ExternalMetricStatus
HorizontalPodAutoscalerCondition type:1!s status:2!s lastTransitionTime:3!t reason:4s message:5s observedGeneration:6?l
autoscaling.v2.HorizontalPodAutoscalerStatus observedGeneration:1?l lastScaleTime:2?t currentReplicas:3i desiredReplicas:4!i currentMetrics:5[]!MetricStatus conditions:6[]HorizontalPodAutoscalerCondition@type~type
autoscaling.v2.HorizontalPodAutoscaler metadata:1ObjectMeta spec:2autoscaling.v2.HorizontalPodAutoscalerSpec status:3autoscaling.v2.HorizontalPodAutoscalerStatus
PodFailurePolicyOnExitCodesRequirement containerName:1?s operator:2!s values:3[]!i@
PodFailurePolicyOnPodConditionsPattern type:1!s status:2!s
PodFailurePolicyRule action:1!s onExitCodes:2?PodFailurePolicyOnExitCodesRequirement onPodConditions:3[]PodFailurePolicyOnPodConditionsPattern
PodFailurePolicy rules:1[]!PodFailurePolicyRule
SuccessPolicyRule succeededIndexes:1?s succeededCount:2?i
SuccessPolicy rules:1[]!SuccessPolicyRule
WorkloadPodGroupBasicSchedulingPolicy
WorkloadPodGroupGangSchedulingPolicy minCount:1?i
WorkloadPodGroupSchedulingPolicy basic:1?WorkloadPodGroupBasicSchedulingPolicy gang:2?WorkloadPodGroupGangSchedulingPolicy
TopologyConstraint key:1!s
WorkloadPodGroupSchedulingConstraints topology:1[]TopologyConstraint
WorkloadPodGroupSingleDisruptionMode
WorkloadPodGroupAllDisruptionMode
WorkloadPodGroupDisruptionMode single:1?WorkloadPodGroupSingleDisruptionMode all:2?WorkloadPodGroupAllDisruptionMode
WorkloadPodGroupResourceClaim name:1!s resourceClaimName:2?s resourceClaimTemplateName:3?s
JobSchedulingConfiguration schedulingPolicy:1?WorkloadPodGroupSchedulingPolicy schedulingConstraints:2?WorkloadPodGroupSchedulingConstraints disruptionMode:3?WorkloadPodGroupDisruptionMode resourceClaims:4[]WorkloadPodGroupResourceClaim@name~name
JobSpec parallelism:1?i completions:2?i activeDeadlineSeconds:3?l podFailurePolicy:11?PodFailurePolicy successPolicy:16?SuccessPolicy backoffLimit:7?i backoffLimitPerIndex:12?i maxFailedIndexes:13?i selector:4?LabelSelector manualSelector:5?o template:6PodTemplateSpec ttlSecondsAfterFinished:8?i completionMode:9?s suspend:10?o podReplacementPolicy:14?s managedBy:15?s scheduling:17?JobSchedulingConfiguration
JobTemplateSpec metadata:1ObjectMeta spec:2JobSpec
CronJobSpec schedule:1!s timeZone:8?s startingDeadlineSeconds:2?l concurrencyPolicy:3s suspend:4?o jobTemplate:5JobTemplateSpec successfulJobsHistoryLimit:6?i failedJobsHistoryLimit:7?i
CronJobStatus active:1[]ObjectReference lastScheduleTime:4?t lastSuccessfulTime:5?t
CronJob metadata:1ObjectMeta spec:2CronJobSpec status:3CronJobStatus
JobCondition type:1!s status:2!s lastProbeTime:3!t lastTransitionTime:4!t reason:5s message:6s
UncountedTerminatedPods succeeded:1[]s@ failed:2[]s@
JobStatus conditions:1[]JobCondition~type startTime:2?t completionTime:3?t active:4i succeeded:5i failed:6i terminating:11?i completedIndexes:7s failedIndexes:10?s uncountedTerminatedPods:8?UncountedTerminatedPods ready:9?i
Job metadata:1ObjectMeta spec:2JobSpec status:3JobStatus
EndpointConditions ready:1?o serving:2?o terminating:3?o
ForZone name:1!s
ForNode name:1!s
EndpointHints forZones:1[]ForZone forNodes:2[]ForNode
Endpoint addresses:1[]!s@ conditions:2EndpointConditions hostname:3?s targetRef:4?ObjectReference deprecatedTopology:5{}s nodeName:6?s zone:7?s hints:8?EndpointHints
discovery.v1.EndpointPort % name:1?s protocol:2?s port:3?i appProtocol:4?s
EndpointSlice metadata:1ObjectMeta addressType:4!s endpoints:2[]!Endpoint ports:3[]!discovery.v1.EndpointPort
ParentReference group:1s resource:2s namespace:3s name:4s
IPAddressSpec parentRef:1?ParentReference
IPAddress metadata:1ObjectMeta spec:2IPAddressSpec
ServiceBackendPort % name:1s number:2i
IngressServiceBackend name:1!s port:2ServiceBackendPort
IngressBackend service:4?IngressServiceBackend resource:3?TypedLocalObjectReference
IngressTLS hosts:1[]s secretName:2s
HTTPIngressPath path:1s pathType:3?!s backend:2IngressBackend
HTTPIngressRuleValue paths:1[]!HTTPIngressPath
IngressRuleValue http:1?HTTPIngressRuleValue
IngressRule host:1s :2^IngressRuleValue
IngressSpec ingressClassName:4?s defaultBackend:1?IngressBackend tls:2[]IngressTLS rules:3[]IngressRule
IngressPortStatus port:1!i protocol:2!s error:3?s
IngressLoadBalancerIngress ip:1s hostname:2s ports:4[]IngressPortStatus
IngressLoadBalancerStatus ingress:1[]IngressLoadBalancerIngress
IngressStatus loadBalancer:1IngressLoadBalancerStatus
Ingress metadata:1ObjectMeta spec:2IngressSpec status:3IngressStatus
IngressClassParametersReference apiGroup:1?s kind:2!s name:3!s scope:4?!s namespace:5?s
IngressClassSpec controller:1s parameters:2?IngressClassParametersReference
IngressClass metadata:1ObjectMeta spec:2IngressClassSpec
NetworkPolicyPort protocol:1?s port:2?IntOrString endPort:3?i
IPBlock cidr:1!s except:2[]s
NetworkPolicyPeer podSelector:1?LabelSelector namespaceSelector:2?LabelSelector ipBlock:3?IPBlock
NetworkPolicyIngressRule ports:1[]NetworkPolicyPort from:2[]NetworkPolicyPeer
NetworkPolicyEgressRule ports:1[]NetworkPolicyPort to:2[]NetworkPolicyPeer
NetworkPolicySpec podSelector:1LabelSelector ingress:2[]NetworkPolicyIngressRule egress:3[]NetworkPolicyEgressRule policyTypes:4[]s
NetworkPolicy metadata:1ObjectMeta spec:2NetworkPolicySpec
ServiceCIDRSpec cidrs:1[]s
ServiceCIDRStatus conditions:1[]Condition@type~type
ServiceCIDR metadata:1ObjectMeta spec:2ServiceCIDRSpec status:3ServiceCIDRStatus
Overhead podFixed:1{}Quantity
Scheduling nodeSelector:1{}s% tolerations:2[]Toleration
RuntimeClass metadata:1ObjectMeta handler:2!s overhead:3?Overhead scheduling:4?Scheduling
PodDisruptionBudgetSpec minAvailable:1?IntOrString selector:2?LabelSelector maxUnavailable:3?IntOrString unhealthyPodEvictionPolicy:4?s
PodDisruptionBudgetStatus observedGeneration:1l disruptedPods:2{}t disruptionsAllowed:3!i currentHealthy:4!i desiredHealthy:5!i expectedPods:6!i conditions:7[]Condition@type~type
PodDisruptionBudget metadata:1ObjectMeta spec:2PodDisruptionBudgetSpec status:3PodDisruptionBudgetStatus
PolicyRule verbs:1[]!s apiGroups:2[]s resources:3[]s resourceNames:4[]s nonResourceURLs:5[]s
AggregationRule clusterRoleSelectors:1[]LabelSelector
ClusterRole metadata:1ObjectMeta rules:2[]!PolicyRule aggregationRule:3?AggregationRule
Subject % kind:1!s apiGroup:2s name:3!s namespace:4s
RoleRef % apiGroup:1!s kind:2!s name:3!s
ClusterRoleBinding metadata:1ObjectMeta subjects:2[]Subject roleRef:3RoleRef
Role metadata:1ObjectMeta rules:2[]!PolicyRule
RoleBinding metadata:1ObjectMeta subjects:2[]Subject roleRef:3RoleRef
PriorityClass metadata:1ObjectMeta value:2!i globalDefault:3o description:4s preemptionPolicy:5?s
TokenRequest audience:1!s expirationSeconds:2?l
CSIDriverSpec attachRequired:1?o podInfoOnMount:2?o volumeLifecycleModes:3[]s@ storageCapacity:4?o fsGroupPolicy:5?s tokenRequests:6[]TokenRequest requiresRepublish:7?o seLinuxMount:8?o nodeAllocatableUpdatePeriodSeconds:9?l serviceAccountTokenInSecrets:10?o preventPodSchedulingIfMissing:11?o
CSIDriver metadata:1ObjectMeta spec:2CSIDriverSpec
VolumeNodeResources count:1?i
CSINodeDriver name:1!s nodeID:2!s topologyKeys:3[]!s allocatable:4?VolumeNodeResources
CSINodeSpec drivers:1[]!CSINodeDriver@name~name
StorageHealthCondition status:1!s reason:2!s message:3s accessMode:4?s volumeMode:5?s lastTransitionTime:6!t
StorageHealth name:1!s healthConditions:2[]StorageHealthCondition
CSINodeStatus storageHealth:1[]StorageHealth@name~name
CSINode metadata:1ObjectMeta spec:2CSINodeSpec status:3CSINodeStatus
CSIStorageCapacity metadata:1ObjectMeta nodeTopology:2?LabelSelector storageClassName:3!s capacity:4?Quantity maximumVolumeSize:5?Quantity
TopologySelectorLabelRequirement key:1!s values:2[]!s
TopologySelectorTerm % matchLabelExpressions:1[]TopologySelectorLabelRequirement
StorageClass metadata:1ObjectMeta provisioner:2!s parameters:3{}s reclaimPolicy:4?s mountOptions:5[]s allowVolumeExpansion:6?o volumeBindingMode:7?s allowedTopologies:8[]TopologySelectorTerm
VolumeAttachmentSource persistentVolumeName:1?s inlineVolumeSpec:2?PersistentVolumeSpec
VolumeAttachmentSpec attacher:1!s source:2VolumeAttachmentSource nodeName:3!s
VolumeError time:1!t message:2s errorCode:3?i
VolumeAttachmentStatus attached:1!o attachmentMetadata:2{}s attachError:3?VolumeError detachError:4?VolumeError
VolumeAttachment metadata:1ObjectMeta spec:2VolumeAttachmentSpec status:3VolumeAttachmentStatus
VolumeAttributesClass metadata:1ObjectMeta driverName:2!s parameters:3{}s`;
