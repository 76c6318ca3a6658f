// Short names for the generated types. No type is written by hand that the API's document knows.
import type { components } from "./generated/schema";

type Schemas = components["schemas"];

export type Problem = Schemas["ProblemDetails"];
export type Session = Schemas["Session"];
export type User = Schemas["User"];
export type SecondFactor = Schemas["SecondFactor"];
export type SecondFactorDraft = Schemas["SecondFactorDraft"];
export type Demand = Schemas["Demand"];
export type Token = Schemas["Token"];
export type Role = Schemas["Role"];
export type UserRole = Schemas["UserRole"];

export type Database = Schemas["Database"];
export type DatabaseCreate = Schemas["DatabaseCreate"];
export type ConnectionTest = Schemas["ConnectionTest"];
export type SourceTable = Schemas["SourceTable"];
export type Search = Schemas["Search"];
export type SearchCreate = Schemas["SearchCreate"];
export type Searches = Schemas["Searches"];
export type Change = Schemas["Change"];
export type ChangedColumn = Schemas["ChangedColumn"];
export type ChangedValue = Schemas["ChangedValue"];
export type Check = Schemas["Check"];
export type Preflight = Schemas["Preflight"];

export type Engine = Schemas["Engine"];
export type EngineRef = Schemas["EngineRef"];
export type Operation = Schemas["Operation"];
export type AuditEntry = Schemas["AuditEntry"];

export type Overview = Schemas["Overview"];
export type CaptureKind = Schemas["CaptureKind"];
export type StreamSummary = Schemas["StreamSummary"];
export type Lag = Schemas["Lag"];
export type Slot = Schemas["Slot"];
export type Stream = Schemas["Stream"];
export type DestinationSummary = Schemas["DestinationSummary"];
export type StreamDestination = Schemas["StreamDestination"];
export type DestinationAdd = Schemas["DestinationAdd"];
export type DestinationCreate = Schemas["DestinationCreate"];
export type DestinationUpdate = Schemas["DestinationUpdate"];
export type DestinationSample = Schemas["DestinationSample"];
export type StreamReport = Schemas["StreamReport"];
export type StreamTable = Schemas["StreamTable"];
export type TroubleResolution = Schemas["TroubleResolution"];
export type StreamWait = Schemas["StreamWait"];
export type Blocker = Schemas["Blocker"];
export type StreamError = Schemas["StreamError"];
export type StreamCreate = Schemas["StreamCreate"];
export type StreamParameter = Schemas["StreamParameter"];
export type Instantiation = Schemas["Instantiation"];
export type TableProgress = Schemas["TableProgress"];
export type TablePattern = Schemas["TablePattern"];
export type TableRules = Schemas["TableRules"];
export type ScopedRules = Schemas["ScopedRules"];
export type Rename = Schemas["Rename"];
export type TableTransformations = Schemas["TableTransformations"];
export type Transformation = TableTransformations["steps"][number];
export type RuleScope = Schemas["RuleScope"];
export type RowRule = Schemas["RowRule"];
export type OnError = Schemas["OnError"];
export type RuleCounts = Schemas["RuleCounts"];
export type RuleCountsOfTable = Schemas["RuleCountsOfTable"];
export type RuledOperation = Schemas["RuledOperation"];
export type RuleProblem = Schemas["RuleProblem"];
export type RulesCheckRequest = Schemas["RulesCheckRequest"];
export type RulesTestRequest = Schemas["RulesTestRequest"];
export type RulesTest = Schemas["RulesTest"];
export type TriedChange = Schemas["TriedChange"];
export type JudgedChange = Schemas["JudgedChange"];
export type RuleOutcome = Schemas["RuleOutcome"];
export type SourceColumn = Schemas["SourceColumn"];
export type TablePreview = Schemas["TablePreview"];
export type ParkedTransaction = Schemas["ParkedTransaction"];
export type ParkedTransactions = Schemas["ParkedTransactions"];
export type ParkedContents = Schemas["ParkedContents"];
export type ParkedDependant = Schemas["ParkedDependant"];
export type ParkedTree = Schemas["ParkedTree"];
export type ParkedChange = Schemas["ParkedChange"];
export type ParkedColumn = Schemas["ParkedColumn"];
export type ParkedEdit = Schemas["ParkedEdit"];
export type ChangeEdit = Schemas["ChangeEdit"];
export type ParkedValue = Schemas["ParkedValue"];
export type ErrorCause = Schemas["ErrorCause"];
export type DryRun = Schemas["DryRun"];
export type LoggedChange = Schemas["LoggedChange"];
export type OpenedConflict = Schemas["OpenedConflict"];
export type ConflictCount = Schemas["ConflictCount"];
export type ErrorExecution = Schemas["ErrorExecution"];
export type Sample = Schemas["Sample"];
export type ComponentSample = Schemas["ComponentSample"];
export type SlotServer = Schemas["SlotServer"];
export type ServerSlot = Schemas["ServerSlot"];
export type Alert = Schemas["Alert"];
export type AlertRule = Schemas["AlertRule"];
export type AlertRuleValues = Schemas["AlertRuleValues"];
export type AlertRuleSettings = Schemas["AlertRuleSettings"];
export type AlertSilence = Schemas["AlertSilence"];
export type AlertChannel = Schemas["AlertChannel"];
export type AlertDelivery = Schemas["AlertDelivery"];
export type Topology = Schemas["Topology"];
export type Outage = Schemas["Outage"];
export type StreamEvent = Schemas["StreamEvent"];
export type StreamHistory = Schemas["StreamHistory"];
export type StatisticName = Schemas["StatisticName"];
export type HistorySeries = Schemas["HistorySeries"];

export type Transaction = Schemas["Transaction"];
export type StreamTransactions = Schemas["StreamTransactions"];
export type Marker = Schemas["Marker"];
export type MarkerHop = Schemas["MarkerHop"];

export type AdvisorAnalysis = Schemas["Analysis"];
export type AdvisorPath = Schemas["AdvisorPath"];
export type AdvisorComponent = Schemas["AdvisorComponent"];
export type ComponentStatistic = Schemas["ComponentStatistic"];
export type PathBottleneck = Schemas["PathBottleneck"];
export type Verdict = Schemas["Verdict"];
export type RunPath = Schemas["RunPath"];
export type RunSummary = Schemas["RunSummary"];
export type RunReason = Schemas["RunReason"];
export type RunCreate = Schemas["RunCreate"];
export type AdvisorRun = Schemas["Run"];
export type LiveAnalysis = Schemas["LiveAnalysis"];
export type Lab = Schemas["Lab"];
export type LabCause = Schemas["LabCause"];
export type LabCauseName = Schemas["CauseName"];
export type LabLoad = Schemas["LabLoad"];
export type LabState = Schemas["LabState"];
export type Finding = Schemas["Finding"];
export type FindingEvidence = Schemas["Evidence"];
export type Cure = Schemas["Cure"];
export type AppliedCure = Schemas["AppliedCure"];
export type Schedule = Schemas["Schedule"];
export type ScheduleCreate = Schemas["ScheduleCreate"];
export type ScheduleUpdate = Schemas["ScheduleUpdate"];
export type Policy = Schemas["Policy"];
export type PolicyUpdate = Schemas["PolicyUpdate"];
export type Comparison = Schemas["Comparison"];
export type ComparedStatistic = Schemas["ComparedStatistic"];
export type FactSheet = Schemas["FactSheet"];
export type Execution = Schemas["Execution"];
export type ErrorPolicy = Schemas["ErrorPolicy"];
export type ConflictHandler = Schemas["ConflictHandler"];
export type ComparedTable = Schemas["ComparedTable"];
export type StatementHandler = Schemas["StatementHandler"];
export type ParameterValue =
  | boolean
  | number
  | string
  | ErrorPolicy[]
  | ConflictHandler[]
  | ComparedTable[]
  | StatementHandler[];
