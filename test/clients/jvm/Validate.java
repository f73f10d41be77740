import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.networknt.schema.JsonSchema;
import com.networknt.schema.JsonSchemaFactory;
import com.networknt.schema.SpecVersion;

/** Validates configs as the platform does when a source is saved. Reads `[schema, [config, …]]`; prints what is wrong, a line a config. */
public class Validate {
  public static void main(String[] args) throws Exception {
    JsonNode given = new ObjectMapper().readTree(System.in);
    JsonSchema schema = JsonSchemaFactory.getInstance(SpecVersion.VersionFlag.V7).getSchema(given.get(0));
    for (JsonNode config : given.get(1)) System.out.println(schema.validate(config));
  }
}
