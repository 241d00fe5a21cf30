# Copyright (c) 2026, slurm_ops.kubernetes authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to this collection: may change at any time.

"""The keys that the files of Slurm know, from the option tables inside the binaries of 26.05 (older keys are in them).

An unknown key is fatal to slurmctld and even to scontrol, which reads the file first: so a slip of the pen is refused
here. Keys of a newer Slurm than the tables are let through.
"""

from __future__ import annotations

from .problems import did_you_mean


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Keys of slurm.conf.
SLURM_CONF = _words(
    """
    AccountingStorageBackupHost AccountingStorageEnforce AccountingStorageExternalHost AccountingStorageHost
    AccountingStorageParameters AccountingStoragePass AccountingStoragePort AccountingStorageTRES
    AccountingStorageType AccountingStorageUser AccountingStoreFlags AccountingStoreJobComment AcctGatherEnergyType
    AcctGatherFilesystemType AcctGatherInfinibandType AcctGatherInterconnectType AcctGatherNodeFreq
    AcctGatherProfileType AllowSpecResourcesUsage AuthAltParameters AuthAltTypes AuthInfo AuthType BackupAddr
    BackupController BatchStartTimeout BcastExclude BcastParameters BurstBufferParameters BurstBufferType
    CertgenParameters CertgenType CertmgrParameters CertmgrType CliFilterParameters CliFilterPlugins ClusterName
    CommunicationParameters CompleteWait ControlAddr ControlMachine CoreSpecPlugin CpuFreqDef CpuFreqGovernors
    CredType CryptoType DataParserParameters DebugFlags DefCPUPerGPU DefMemPerCPU DefMemPerGPU DefMemPerNode
    DependencyParameters DisableRootJobs DownNodes EioTimeout EnforcePartLimits Epilog EpilogMsgTime EpilogSlurmctld
    EpilogTimeout ExtSensorsFreq ExtSensorsType FairShareDampeningFactor FastSchedule FederationParameters
    FirstJobId GetEnvTimeout GpuFreqDef GresTypes GroupUpdateForce GroupUpdateTime HashPlugin HealthCheckInterval
    HealthCheckNodeState HealthCheckProgram HealthCheckTimeout HttpParserType InactiveLimit InteractiveStepOptions
    JobAcctGatherFrequency JobAcctGatherParams JobAcctGatherType JobCompHost JobCompLoc JobCompParams JobCompPass
    JobCompPassScript JobCompPort JobCompType JobCompUser JobContainerType JobCredentialPrivateKey
    JobCredentialPublicCertificate JobFileAppend JobRequeue JobSubmitPlugins KeepAliveTime KillOnBadExit KillWait
    LaunchParameters LaunchType LicenseParameters Licenses LogTimeFormat MailDomain MailProg MaxArraySize
    MaxBatchRequeue MaxDBDMsgs MaxJobCount MaxJobId MaxMemPerCPU MaxMemPerNode MaxNodeCount MaxStepCount
    MaxTasksPerNode MCSParameters MCSPlugin MessageTimeout MetricsAuthUsers MetricsParameters MetricsType MinJobAge
    MpiDefault MpiParams NamespaceType NodeFeaturesPlugins NodeName NodeSet OverTimeLimit PartitionName PluginDir
    PlugStackConfig PowerAction PowerParameters PowerPlugin PreemptExemptTime PreemptMode PreemptParameters
    PreemptType PrEpParameters PrEpPlugins PriorityCalcPeriod PriorityDecayHalfLife PriorityFavorSmall PriorityFlags
    PriorityMaxAge PriorityParameters PrioritySiteFactorParameters PrioritySiteFactorPlugin PriorityType
    PriorityUsageResetPeriod PriorityWeightAge PriorityWeightAssoc PriorityWeightFairshare PriorityWeightJobSize
    PriorityWeightPartition PriorityWeightQOS PriorityWeightTRES PrivateData ProctrackType Prolog
    PrologEpilogTimeout PrologFlags PrologSlurmctld PrologTimeout PropagatePrioProcess PropagateResourceLimits
    PropagateResourceLimitsExcept RebootProgram ReconfigFlags RequeueExit RequeueExitHold ResumeFailProgram
    ResumeProgram ResumeRate ResumeTimeout ResvEpilog ResvOverRun ResvProlog ReturnToService RoutePlugin
    SallocDefaultCommand SbcastParameters SchedulerParameters SchedulerTimeSlice SchedulerType ScronParameters
    SelectType SelectTypeParameters SlurmctldAddr SlurmctldDebug SlurmctldHost SlurmctldHttpAuthParameters
    SlurmctldLogFile SlurmctldParameters SlurmctldPidFile SlurmctldPort SlurmctldPrimaryOffProg
    SlurmctldPrimaryOnProg SlurmctldSyslogDebug SlurmctldTimeout SlurmdDebug SlurmdHttpAuthParameters SlurmdLogFile
    SlurmdParameters SlurmdPidFile SlurmdPort SlurmdSpoolDir SlurmdSyslogDebug SlurmdTimeout SlurmdUser
    SlurmSchedLogFile SlurmSchedLogLevel SlurmUser SrunEpilog SrunPortRange SrunProlog StateSaveLocation
    SuspendExcNodes SuspendExcParts SuspendExcStates SuspendProgram SuspendRate SuspendTime SuspendTimeout
    SwitchParameters SwitchType TaskEpilog TaskPlugin TaskPluginParam TaskProlog TCPTimeout TLSParameters TLSType
    TmpFS TopologyParam TopologyPlugin TrackWCKey TreeWidth UnkillableStepProgram UnkillableStepTimeout
    UrlParserType UsePAM VSizeFactor WaitTime X11Parameters
    """
)
# Keys of a NodeName line, and slurmd --conf.
NODE = _words(
    """
    BcastAddr Boards CoreSpecCount CoresPerSocket CpuBind CPUs CPUSpecList Feature Features Gres GresConf
    MemSpecLimit NodeAddr NodeHostname Parameters Port Procs RealMemory Reason RestrictedCoresPerGPU Sockets
    SocketsPerBoard State SuspendTime ThreadsPerCore TmpDisk Topology TRESWeights Weight
    """
)
# Keys of a PartitionName line.
PARTITION = _words(
    """
    AllocNodes AllowAccounts AllowGroups AllowQos Alternate CpuBind Default DefaultTime DefCPUPerGPU DefMemPerCPU
    DefMemPerGPU DefMemPerNode DenyAccounts DenyQos DisableRootJobs Exclusive ExclusiveTopo ExclusiveUser GraceTime
    Hidden LLN MaxCPUsPerNode MaxCPUsPerSocket MaxMemPerCPU MaxMemPerNode MaxNodes MaxTime MinNodes Nodes
    OverSubscribe OverTimeLimit PowerDownOnIdle PreemptMode Priority PriorityJobFactor PriorityTier QOS ReqResv
    ResumeTimeout RootOnly SelectTypeParameters Shared State SuspendTime SuspendTimeout Topology TRESBillingWeights
    """
)
# Keys of cgroup.conf.
CGROUP_CONF = _words(
    """
    AllowedDevicesFile AllowedRAMSpace AllowedSwapSpace CgroupAutomount CgroupJobIdPaths CgroupMountpoint
    CgroupPlugin CgroupSlice ConstrainCores ConstrainDevices ConstrainRAMSpace ConstrainSwapSpace EnableControllers
    EnableExtraControllers IgnoreSystemd IgnoreSystemdOnFailure MaxRAMPercent MaxSwapPercent MemorySwappiness
    MinRAMSpace SignalChildrenProcesses SystemdTimeout
    """
)
# Keys of slurmdbd.conf.
SLURMDBD_CONF = _words(
    """
    AllowNoDefAcct AllResourcesAbsolute ArchiveDir ArchiveEvents ArchiveJobEnv ArchiveJobs ArchiveJobScript
    ArchiveResvs ArchiveScript ArchiveSteps ArchiveSuspend ArchiveTXN ArchiveUsage AuthAltParameters AuthAltTypes
    AuthInfo AuthType CommitDelay CommunicationParameters DbdAddr DbdBackupHost DbdHost DbdPort DebugFlags
    DebugLevel DebugLevelSyslog DefaultQOS DisableArchiveCommands DisableCoordDBD DisableRollups HashPlugin JobPurge
    LogFile LogTimeFormat MaxPurgeLimit MaxQueryTimeRange MessageTimeout Parameters PidFile PluginDir
    PreserveCaseResource PreserveCaseUser PrivateData PurgeEventAfter PurgeEventMonths PurgeJobAfter
    PurgeJobEnvAfter PurgeJobMonths PurgeJobScriptAfter PurgeResvAfter PurgeStepAfter PurgeStepMonths
    PurgeSuspendAfter PurgeSuspendMonths PurgeTXNAfter PurgeTXNMonths PurgeUsageAfter PurgeUsageMonths SlurmUser
    StepPurge StorageBackupHost StorageHost StorageLoc StorageParameters StoragePass StoragePassScript StoragePort
    StorageType StorageUser TCPTimeout TLSParameters TLSType TrackSlurmctldDown TrackWCKey
    """
)

# Values that are comma lists of independent words: what the user gives is added to what we need.
COMMA_LISTS = _words(
    """
    AccountingStorageEnforce AccountingStorageTRES AccountingStoreFlags AuthAltParameters AuthAltTypes AuthInfo
    BcastParameters CliFilterParameters CliFilterPlugins CommunicationParameters DebugFlags DependencyParameters
    FederationParameters GresTypes HealthCheckNodeState JobAcctGatherParams JobSubmitPlugins LaunchParameters
    MetricsParameters MpiParams NodeFeaturesPlugins PreemptParameters PrEpParameters PrEpPlugins PriorityFlags
    PrivateData PrologFlags ReconfigFlags SbcastParameters SchedulerParameters SlurmctldParameters SlurmdParameters
    SwitchParameters TaskPlugin TopologyParam X11Parameters
    """
)

_LOWERED: dict[frozenset[str], dict[str, str]] = {}


def spelled(key: str, known: frozenset[str]) -> str | None:
    """The usual spelling of a key (keys are case-insensitive), or None when it is not known."""
    if known not in _LOWERED:
        _LOWERED[known] = {name.lower(): name for name in known}
    return _LOWERED[known].get(key.lower())


def unknown_key(key: str, known: frozenset[str]) -> str:
    """What to say of a key that is not known."""
    return f"Slurm knows no such key{did_you_mean(key, known)}"
