"""GraphQL: a document that is sent with variables, and the place of the rows in what comes back."""

from wrappers.graphql.declared import GraphqlQuery, GraphqlReader
from wrappers.graphql.document import Asked, Document, Variable, parse

__all__ = ["Asked", "Document", "GraphqlQuery", "GraphqlReader", "Variable", "parse"]
