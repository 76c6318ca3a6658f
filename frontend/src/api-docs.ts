// The page at /api/docs: the reference of the REST API, drawn from the document that the same server gives.
import SwaggerUI from "swagger-ui-dist/swagger-ui-es-bundle";
import "swagger-ui-dist/swagger-ui.css";

SwaggerUI({
  dom_id: "#reference",
  url: "/api/v1/openapi.json",
  docExpansion: "list",
  defaultModelsExpandDepth: 0,
  displayOperationId: true,
  filter: true,
  // Without it, the document's address would be sent to a service that validates it.
  validatorUrl: null,
});
