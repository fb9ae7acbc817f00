"use strict";
// Whole numbers and long answers stay plain text: highlighting megabytes would freeze the page.
SwaggerUIBundle({
  url: "/openapi.json",
  dom_id: "#swagger-ui",
  deepLinking: true,
  syntaxHighlight: false,
  tryItOutEnabled: true,
  validatorUrl: null,
});
