declare module "swagger-ui-dist/swagger-ui-es-bundle" {
  /** The options that are used here, of https://swagger.io/docs/open-source-tools/swagger-ui/usage/configuration. */
  export default function SwaggerUI(options: {
    dom_id: string;
    url: string;
    docExpansion: "list";
    defaultModelsExpandDepth: number;
    displayOperationId: boolean;
    filter: boolean;
    validatorUrl: null;
  }): void;
}
