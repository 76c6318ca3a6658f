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
export type Stream = Schemas["Stream"];
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
export type Topology = Schemas["Topology"];
export type ParameterValue = boolean | number | string;
