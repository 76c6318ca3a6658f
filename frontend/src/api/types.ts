// Short names for the generated types. No type is written by hand that the API's document knows.
import type { components } from "./generated/schema";

type Schemas = components["schemas"];

export type Problem = Schemas["ProblemDetails"];
export type Session = Schemas["Session"];
export type User = Schemas["User"];
export type Token = Schemas["Token"];
export type Role = Schemas["Role"];

export type Database = Schemas["Database"];
export type DatabaseCreate = Schemas["DatabaseCreate"];
export type ConnectionTest = Schemas["ConnectionTest"];
export type SourceTable = Schemas["SourceTable"];
export type Check = Schemas["Check"];
export type Preflight = Schemas["Preflight"];

export type Engine = Schemas["Engine"];
export type EngineRef = Schemas["EngineRef"];
export type Operation = Schemas["Operation"];
export type AuditEntry = Schemas["AuditEntry"];

export type Overview = Schemas["Overview"];
export type StreamSummary = Schemas["StreamSummary"];
export type Backlog = Schemas["Backlog"];
export type Slot = Schemas["Slot"];
export type Stream = Schemas["Stream"];
export type DestinationSummary = Schemas["DestinationSummary"];
export type StreamDestination = Schemas["StreamDestination"];
export type DestinationCreate = Schemas["DestinationCreate"];
export type DestinationSample = Schemas["DestinationSample"];
export type StreamHalf = Schemas["StreamHalf"];
export type StreamTable = Schemas["StreamTable"];
export type StreamError = Schemas["StreamError"];
export type StreamCreate = Schemas["StreamCreate"];
export type StreamParameter = Schemas["StreamParameter"];
export type Instantiation = Schemas["Instantiation"];
export type TableProgress = Schemas["TableProgress"];
export type TableRule = Schemas["TableRule"];
export type TableRules = Schemas["TableRules"];
export type TablePreview = Schemas["TablePreview"];
export type ParkedTransaction = Schemas["ParkedTransaction"];
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
export type ParameterValue = boolean | number | string;
